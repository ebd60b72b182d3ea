// Owns a precompiled header (WeftBuild.cmake), nothing else.
