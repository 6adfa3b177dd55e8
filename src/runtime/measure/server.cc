// SPDX-License-Identifier: Apache-2.0
// The server: one worker at a time, watched, and forked anew when it dies.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

#include "runtime/measure/measure.h"

namespace tvm::runtime::measure {

bool WriteLine(int fd, const Message& message) {
  std::string text(ffi::json::Stringify(message));
  text += '\n';
  for (size_t at = 0; at < text.size();) {
    ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}
LineReader::Status LineReader::Read(std::string* line, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    if (size_t newline = pending_.find('\n'); newline != std::string::npos) {
      *line = pending_.substr(0, newline);
      pending_.erase(0, newline + 1);
      return Status::kLine;
    }
    int wait = -1;
    if (seconds >= 0) {
      wait =
          static_cast<int>(std::chrono::duration<double, std::milli>(end - Clock::now()).count());
      if (wait < 0) return Status::kTimeout;
    }
    pollfd p = {fd_, POLLIN, 0};
    int ready = poll(&p, 1, wait);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Status::kTimeout;
    char buffer[4096];
    ssize_t n = read(fd_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Status::kClosed;
    pending_.append(buffer, static_cast<size_t>(n));
  }
}

namespace {
std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    return "crashed: signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  if (WEXITSTATUS(status) == kHopelessExit) {
    return "stopped: more than " + std::to_string(static_cast<int>(kHopeless)) +
           " times as slow as the best so far";
  }
  return "crashed: exit code " + std::to_string(WEXITSTATUS(status));
}

class Server {
 public:
  ~Server() { Kill(); }
  Message Answer(const Message& request) {
    if (Get<String>(request, "op", "") == "task") return StartTask(request);
    if (!arguments_) return {{"error", "expected a task first"}};
    return Ask(request);
  }

 private:
  Message StartTask(const Message& request) {
    Kill();
    arguments_.reset();
    has_expected_ = false;
    arguments_ = std::make_unique<Arguments>(Get<ffi::json::Array>(request, "args", {}),
                                             Get<int64_t>(request, "seed", 0));
    memory_limit_ = static_cast<uint64_t>(Get<double>(request, "memory_mb", 0.) * (1 << 20));
    auto reference = Get<String>(request, "reference", "");
    if (reference.empty()) return {{"secs", ffi::json::Array{}}};
    Message reply = Ask({{"op", "reference"},
                         {"path", reference},
                         {"timeout", Get<double>(request, "timeout", 60.)}});
    has_expected_ = reply.count("secs") > 0;
    Kill();  // the worker that made the expected values does not know of them
    return reply;
  }
  Message Ask(const Message& request) {
    if (worker_ == 0) Fork();
    if (!WriteLine(to_, request)) return {{"error", Bury()}};
    double timeout = Get<double>(request, "timeout", 30.);
    std::string line;
    switch (reader_->Read(&line, timeout)) {
      case LineReader::Status::kLine:
        return ffi::json::Parse(line).cast<Message>();
      case LineReader::Status::kClosed:
        return {{"error", Bury()}};
      case LineReader::Status::kTimeout:
        break;
    }
    Kill();
    std::string seconds = std::to_string(timeout);
    return {{"error", "timed out after " + seconds.substr(0, seconds.find('.') + 2) + " s"}};
  }
  void Fork() {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0) TVM_FFI_THROW(OSError) << "measure: no pipe";
    if (pipe2(up, O_CLOEXEC) != 0) {
      close(down[0]);
      close(down[1]);
      TVM_FFI_THROW(OSError) << "measure: no pipe";
    }
    worker_ = fork();
    if (worker_ == 0) {
      close(down[1]);
      close(up[0]);
      WorkerMain(down[0], up[1], *arguments_, has_expected_, memory_limit_);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
    if (worker_ < 0) {
      worker_ = 0;
      close(to_);
      close(from_);
      TVM_FFI_THROW(OSError) << "measure: cannot fork: " << std::strerror(errno);
    }
    reader_ = std::make_unique<LineReader>(from_);
  }
  /// Waits for a worker that is ending by itself and says how it did.
  std::string Bury() {
    int status = 0;
    while (waitpid(worker_, &status, 0) < 0 && errno == EINTR) {
    }
    worker_ = 0;
    close(to_);
    close(from_);
    return HowItEnded(status);
  }
  void Kill() {
    if (worker_ == 0) return;
    kill(worker_, SIGKILL);
    Bury();
  }

  std::unique_ptr<Arguments> arguments_;
  std::unique_ptr<LineReader> reader_;
  bool has_expected_ = false;
  uint64_t memory_limit_ = 0;
  pid_t worker_ = 0;
  int to_ = -1, from_ = -1;
};
}  // namespace
}  // namespace tvm::runtime::measure

/// Serves requests from standard input until it closes. Replies go to standard output; what
/// candidates print goes to standard error.
extern "C" TVM_FFI_DLL_EXPORT int TVMMeasureServe() {
  using namespace tvm::runtime::measure;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN);  // Ctrl-C is the tuner's: it closes the pipe when it is done
  tvm::Initialize();
  int replies = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
  if (replies < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  Server server;
  LineReader reader(STDIN_FILENO);
  std::string line;
  while (reader.Read(&line, -1) == LineReader::Status::kLine) {
    Message reply;
    try {
      reply = server.Answer(tvm::ffi::json::Parse(line).cast<Message>());
    } catch (const std::exception& error) {
      reply.Set(tvm::String("error"), tvm::String(error.what()));
    }
    if (!WriteLine(replies, reply)) break;
  }
  return 0;
}
