#include "cohabit/cohabit.h"

int main(int argc, char** argv) {
  return cohabit_main(argc, argv);
}
