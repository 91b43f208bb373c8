//===- kvbuf-lsp-server.cpp - Language server for kvbuffer modules --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's language server runs in a process of its own, behind pipes: it is a
// whole program, whose answers cannot be changed from within. This one stands
// between it and the editor, and adds to them.
//
//===----------------------------------------------------------------------===//

#include "Mediator.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/CommandLine.h"
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace mlir;

/// Runs MLIR's server on the ends of two pipes; does not return.
[[noreturn]] static void serve(int in, int out, std::vector<char *> arguments,
                               DialectRegistry &registry) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  bool good = succeeded(MlirLspServerMain(static_cast<int>(arguments.size()),
                                          arguments.data(), registry));
  std::fflush(stdout);
  std::_Exit(good ? 0 : 1);
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  kvbuf::registerAllDialects(registry);
  // A file may hold what a kernel is raised from: linalg on tensors, say.
  registerAllDialects(registry);

  bool delimited = false;
  std::vector<char *> arguments;
  for (int i = 0; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    bool isForm = argument.ltrim('-') == "lit-test" ||
                  argument.ltrim('-') == "input-style=delimited";
    delimited |= isForm;
    if (!isForm)
      arguments.push_back(argv[i]);
    if (argument.starts_with("--help") || argument == "--version") {
      // Those of the server are registered there; the others are LLVM's.
      if (argument == "--help")
        for (auto &[name, option] : llvm::cl::getRegisteredOptions())
          if (name != "help" && name != "version")
            option->setHiddenFlag(llvm::cl::ReallyHidden);
      return failed(MlirLspServerMain(argc, argv, registry));
    }
  }

  int to[2], from[2];
  if (pipe(to) || pipe(from))
    return std::perror("kvbuf-lsp-server: error: pipe"), 1;
  pid_t child = fork();
  if (child < 0)
    return std::perror("kvbuf-lsp-server: error: fork"), 1;
  if (child == 0) {
    close(to[1]);
    close(from[0]);
    serve(to[0], from[1], std::move(arguments), registry);
  }
  close(to[0]);
  close(from[1]);
  // An editor that goes away, or a server that does, is no reason for a signal.
  std::signal(SIGPIPE, SIG_IGN);
  kvbuf::lsp::mediate(registry, fdopen(to[1], "w"), fdopen(from[0], "r"),
                      delimited);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
