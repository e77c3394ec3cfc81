// What each Xid entails, as data. From NVIDIA's Xid catalogue.
#pragma once

#include <cstdint>

namespace gpusim {

enum class XidClass {
  kApplication,    // an error of a program: a fatal fault of its context (and of all MPS clients)
  kContained,      // contained ECC error: only the program whose memory it was
  kNote,           // follows another one, or informs: nothing else happens
  kResetRequired,  // the GPU needs a reset; what runs on it is lost
  kLost,           // off the bus
};

XidClass xid_class(uint32_t xid);  // an unknown number: kNote

// The CUDA error of the programs it hits.
uint32_t xid_cuda_error(uint32_t xid);

// What the kernel log says of it.
const char* xid_text(uint32_t xid);

}  // namespace gpusim
