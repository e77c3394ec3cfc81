#include "cli/app.h"
#include "composition.h"

int main(int argc, char** argv) {
  return cotenant::cli::run_app(argc, argv, cotenant::make_composition());
}
