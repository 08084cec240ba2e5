//! Conversion of driver result codes to errors of the device interface.

use ash::vk;
use gpu_allocator::AllocationError;
use plan::DeviceError;

/// Installation advice for missing drivers.
pub(crate) const HOW_TO_GET_A_DRIVER: &str = "install the Vulkan loader and a driver (Debian: libvulkan1 and \
     mesa-vulkan-drivers, which brings lavapipe and Mesa's hardware drivers; chromium brings SwiftShader)";

/// Converts a result code of `call` into an error.
pub(crate) fn call_error(call: &'static str) -> impl Fn(vk::Result) -> DeviceError {
    move |result| match result {
        vk::Result::ERROR_DEVICE_LOST => DeviceError::DeviceLost(call),
        vk::Result::ERROR_OUT_OF_HOST_MEMORY
        | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
        | vk::Result::ERROR_OUT_OF_POOL_MEMORY => DeviceError::OutOfMemory(call),
        other => DeviceError::Driver { call, code: format!("{other:?}") },
    }
}

/// Converts an error of the allocator into a device error.
pub(crate) fn allocation_error(error: AllocationError) -> DeviceError {
    match error {
        AllocationError::OutOfMemory => DeviceError::OutOfMemory("vkAllocateMemory"),
        other => DeviceError::Driver { call: "vkAllocateMemory", code: other.to_string() },
    }
}
