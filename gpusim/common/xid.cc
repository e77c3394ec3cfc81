#include "common/xid.h"

#include "cuda/cuda_types.h"

namespace gpusim {
namespace {

struct XidRow {
  uint32_t xid;
  XidClass xid_class;
  uint32_t cuda_error;
  const char* text;
};

constexpr uint32_t kLaunchFailed = CUDA_ERROR_LAUNCH_FAILED;
constexpr uint32_t kEcc = CUDA_ERROR_ECC_UNCORRECTABLE;

constexpr XidRow kRows[] = {
    {8, XidClass::kApplication, kLaunchFailed, "GPU stopped processing"},
    {11, XidClass::kApplication, kLaunchFailed, "Invalid or corrupted push buffer stream"},
    {13, XidClass::kApplication, kLaunchFailed, "Graphics SM Exception"},
    {31, XidClass::kApplication, CUDA_ERROR_ILLEGAL_ADDRESS,
     "MMU Fault: ENGINE GRAPHICS faulted. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"},
    {32, XidClass::kApplication, kLaunchFailed, "Invalid or corrupted push buffer stream"},
    {39, XidClass::kApplication, kLaunchFailed, "Copy Engine Exception"},
    {40, XidClass::kApplication, kLaunchFailed, "Copy Engine Exception"},
    {41, XidClass::kApplication, kLaunchFailed, "Copy Engine Exception"},
    {43, XidClass::kNote, kLaunchFailed, "Ch 00000010, engmask 00000101"},
    {45, XidClass::kNote, kLaunchFailed, "Ch 00000010"},
    {46, XidClass::kResetRequired, kLaunchFailed, "GPU stopped processing"},
    {48, XidClass::kResetRequired, kEcc,
     "An uncorrectable double bit error (DBE) has been detected"},
    {60, XidClass::kApplication, kLaunchFailed, "Video processor exception"},
    {62, XidClass::kResetRequired, kLaunchFailed, "PMU Halt Error"},
    {63, XidClass::kNote, kLaunchFailed, "Row Remapper: New row marked for remapping"},
    {64, XidClass::kResetRequired, kEcc, "Row Remapper: Failed to record row for remapping"},
    {68, XidClass::kApplication, kLaunchFailed, "Video processor exception"},
    {69, XidClass::kApplication, kLaunchFailed, "Graphics Exception: Class Error"},
    {74, XidClass::kResetRequired, kLaunchFailed, "NVLink: fatal error detected on link 0"},
    {79, XidClass::kLost, CUDA_ERROR_UNKNOWN, "GPU has fallen off the bus."},
    {94, XidClass::kContained, kEcc, "Contained: SM (0x1). RST: No, D-RST: No"},
    {95, XidClass::kResetRequired, kEcc, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"},
    {109, XidClass::kResetRequired, kLaunchFailed, "CTX SWITCH TIMEOUT"},
    {110, XidClass::kResetRequired, kLaunchFailed, "Security Fault Error"},
    {119, XidClass::kResetRequired, kLaunchFailed,
     "Timeout after 6s of waiting for RPC response from GSP"},
    {120, XidClass::kResetRequired, kLaunchFailed, "GSP task exception"},
    {137, XidClass::kNote, kLaunchFailed, "NVLink FLA privilege error"},
    {140, XidClass::kResetRequired, kEcc, "Unrecovered ECC Error"},
    {143, XidClass::kResetRequired, kLaunchFailed, "GPU initialization failure"},
    {154, XidClass::kNote, kLaunchFailed, "GPU recovery action changed"},
    {155, XidClass::kResetRequired, kLaunchFailed, "NVLink: software-defined error"},
    {156, XidClass::kResetRequired, kEcc, "Resource retirement event"},
    {158, XidClass::kResetRequired, kLaunchFailed, "GPU fatal timeout"},
    {171, XidClass::kNote, kEcc, "Additional to Xid 48"},
    {172, XidClass::kNote, kEcc, "Additional to Xid 94"},
};

const XidRow* find(uint32_t xid) {
  for (const XidRow& row : kRows) {
    if (row.xid == xid) return &row;
  }
  return nullptr;
}

}  // namespace

XidClass xid_class(uint32_t xid) {
  const XidRow* row = find(xid);
  return row == nullptr ? XidClass::kNote : row->xid_class;
}

uint32_t xid_cuda_error(uint32_t xid) {
  const XidRow* row = find(xid);
  return row == nullptr ? kLaunchFailed : row->cuda_error;
}

const char* xid_text(uint32_t xid) {
  const XidRow* row = find(xid);
  return row == nullptr ? "Unknown" : row->text;
}

}  // namespace gpusim
