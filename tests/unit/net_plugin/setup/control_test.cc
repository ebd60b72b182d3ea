// The control thread: tasks that wait for a descriptor or a time, and what thousands of them cost.
#include "net_plugin/setup/control.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace weft::setup {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Counts what happens to it. Its descriptor is an eventfd, read at each step.
class Counting final : public Task {
 public:
  explicit Counting(bool with_descriptor = true) {
    if (with_descriptor) descriptor_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  Wanted wanted() override {
    asked++;
    Wanted all{descriptor_.get(), short(descriptor_.valid() ? POLLIN : 0), std::nullopt};
    if (interval > 0ns) all.wake = Clock::now() + interval;
    return all;
  }
  bool step(short events, TimePoint) override {
    std::uint64_t value = 0;
    if ((events & POLLIN) != 0) (void)!read(descriptor_.get(), &value, sizeof value);
    ready += int(value);
    if (events == 0) timed++;
    return ready + timed < steps;
  }
  void let_go() override {
    descriptor_.reset();
    let_go_count++;
  }

  void signal() const {
    const std::uint64_t one = 1;
    (void)!write(descriptor_.get(), &one, sizeof one);
  }

  std::chrono::nanoseconds interval{0};  // between timed steps; 0: none
  int steps = 1 << 30;                   // after so many it is over
  std::atomic<int> asked{0}, ready{0}, timed{0}, let_go_count{0};

 private:
  FileDescriptor descriptor_;
};

template <class Condition>
bool eventually(Condition condition) {
  const auto limit = Clock::now() + 20s;
  while (!condition()) {
    if (Clock::now() > limit) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

std::shared_ptr<Control> started() {
  auto control = Control::start();
  EXPECT_TRUE(control) << control.error().text();
  return control.take();
}

TEST(Control, ATaskWhoseDescriptorIsReadyIsCalledAndNoOther) {
  const auto control = started();
  std::vector<std::shared_ptr<Counting>> tasks;
  for (int i = 0; i < 500; i++) {
    tasks.push_back(std::make_shared<Counting>());
    control->add(tasks.back());
  }
  for (int i = 0; i < 50; i++) {
    tasks[17]->signal();
    ASSERT_TRUE(eventually([&] { return tasks[17]->ready == i + 1; }));
  }
  control->call(tasks[17], [] {});
  for (std::size_t i = 0; i < tasks.size(); i++) {
    if (i == 17) continue;
    // What thousands of idle connections cost when one of them has something to do.
    EXPECT_EQ(tasks[i]->asked, 1) << i;
    EXPECT_EQ(tasks[i]->ready + tasks[i]->timed, 0) << i;
  }
}

TEST(Control, TimesComeAgainAndAgainAndDescriptorsBesides) {
  const auto control = started();
  const auto timed = std::make_shared<Counting>(false), both = std::make_shared<Counting>();
  timed->interval = 50us;
  both->interval = 200us;
  control->add(timed);
  control->add(both);
  both->signal();
  EXPECT_TRUE(eventually([&] { return timed->timed > 100 && both->timed > 25 && both->ready == 1; }));
}

// A time that has passed, wanted over and over, must not keep the others from their turn.
TEST(Control, ATaskThatIsAlwaysDueLeavesTheOthersTheirTurn) {
  const auto control = started();
  const auto greedy = std::make_shared<Counting>(false), other = std::make_shared<Counting>();
  greedy->interval = 1ns;
  control->add(greedy);
  control->add(other);
  other->signal();
  EXPECT_TRUE(eventually([&] { return other->ready == 1 && greedy->timed > 1000; }));
}

TEST(Control, ATaskThatIsOverIsLetGoOnce) {
  const auto control = started();
  const auto by_descriptor = std::make_shared<Counting>(), by_time = std::make_shared<Counting>(false);
  by_descriptor->steps = by_time->steps = 1;
  by_time->interval = 1us;
  control->add(by_descriptor);
  control->add(by_time);
  by_descriptor->signal();
  EXPECT_TRUE(eventually([&] { return by_descriptor->let_go_count == 1 && by_time->let_go_count == 1; }));
  control->remove(by_descriptor);  // has gone already
  EXPECT_EQ(by_descriptor->let_go_count, 1);
  EXPECT_TRUE(eventually([&] { return by_time.use_count() == 1 && by_descriptor.use_count() == 1; }));
}

TEST(Control, ATaskThatIsRemovedIsNotCalledAgain) {
  const auto control = started();
  const auto task = std::make_shared<Counting>();
  control->add(task);
  task->signal();
  ASSERT_TRUE(eventually([&] { return task->ready == 1; }));
  control->remove(task);
  EXPECT_EQ(task->let_go_count, 1);
  EXPECT_EQ(task.use_count(), 1);
}

// What a call changes is noticed: here that the task wants to be called.
TEST(Control, AfterACallTheTaskIsAskedWhatItWants) {
  const auto control = started();
  const auto task = std::make_shared<Counting>();
  control->add(task);
  control->call(task, [&] { task->interval = 10us; });
  EXPECT_TRUE(eventually([&] { return task->timed > 3; }));
}

// A child that was forked holds the descriptors open: those of tasks that have gone must not wake the thread for ever.
TEST(Control, DescriptorsThatAChildHoldsDoNotKeepTheThreadBusy) {
  const auto control = started();
  const auto gone = std::make_shared<Counting>(), stays = std::make_shared<Counting>();
  control->add(gone);
  control->add(stays);
  int end[2];
  ASSERT_EQ(pipe(end), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    char byte = 0;
    (void)!read(end[0], &byte, 1);
    _exit(0);
  }
  gone->steps = 1;
  gone->signal();
  ASSERT_TRUE(eventually([&] { return gone->let_go_count == 1; }));
  stays->signal();
  ASSERT_TRUE(eventually([&] { return stays->ready == 1; }));
  const int asked = stays->asked;
  for (int i = 0; i < 20; i++)
    control->call(gone, [] {});
  EXPECT_EQ(stays->asked, asked);
  close(end[0]);
  close(end[1]);
  waitpid(child, nullptr, 0);
}

TEST(Control, TheEndLetsEveryTaskGo) {
  std::vector<std::shared_ptr<Counting>> tasks;
  {
    const auto control = started();
    for (int i = 0; i < 100; i++) {
      tasks.push_back(std::make_shared<Counting>(i % 2 == 0));
      tasks.back()->interval = std::chrono::hours(i % 3);
      control->add(tasks.back());
    }
    control->call(tasks.front(), [] {});
  }
  for (const auto& task : tasks) {
    EXPECT_EQ(task->let_go_count, 1);
    EXPECT_EQ(task.use_count(), 1);
  }
}

}  // namespace
}  // namespace weft::setup
