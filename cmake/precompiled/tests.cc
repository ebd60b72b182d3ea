// Owns the precompiled header of the tests (WeftBuild.cmake), nothing else.
int main() {}
