// Output of `nestor`: text with the phases apart, or JSON lines.
#ifndef NESTOR_CLIENT_CLI_PRINTER_H_
#define NESTOR_CLIENT_CLI_PRINTER_H_

#include <iosfwd>
#include <string>

#include "client/cli/cli_options.h"
#include "nestor/v1/generation_service.pb.h"
#include "nestor/v1/model_service.pb.h"

namespace nestor {

// Prints one generation as it comes. The answer goes to `out`; what is about it (plan, usage, times) to
// `notes`.
class GenerationPrinter {
 public:
  GenerationPrinter(const CliOptions& options, std::ostream& out, std::ostream& notes)
      : options_(options), out_(out), notes_(notes) {}

  // False: it cannot be written.
  bool Print(const v1::GenerateStreamResponse& message);
  // After the last message, also of a generation that was cut off: ends the line, resets the colour.
  void Finish();

  // The answer's text and the thinking's so far.
  const std::string& answer() const { return answer_; }
  const std::string& thinking() const { return thinking_; }

 private:
  void PrintText(const v1::GenerateStreamResponse& message);
  void PrintStart(const v1::GenerationStart& start);
  void PrintDelta(const v1::GenerationDelta& delta);
  void PrintEnd(const v1::GenerationEnd& end);
  void Colour(const char* code);

  const CliOptions& options_;
  std::ostream& out_;
  std::ostream& notes_;
  v1::Phase phase_ = v1::PHASE_UNSPECIFIED;
  std::string answer_;
  std::string thinking_;
};

// A table, or a JSON line.
void PrintModels(const v1::ListModelsResponse& response, OutputForm form, std::ostream& out);

}  // namespace nestor

#endif  // NESTOR_CLIENT_CLI_PRINTER_H_
