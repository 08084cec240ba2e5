//! Measures whether a device shows store buffering, the reordering that is most frequent on processors.
//!
//! Without earlier results of a device, this is the evidence that its runs should show weak outcomes.

use std::time::Duration;

use plan::Device;

use crate::{classic, native};

/// Duration of the native run: about a hundred thousand instances.
const NATIVE_DURATION: Duration = Duration::from_millis(5);

/// Returns true if store buffering shows its weak outcome on the device.
pub(crate) fn shows_store_buffering(device: &dyn Device, timeout: Duration) -> bool {
    // A CPU driver runs kernels on these processors, and native threads need no compilation.
    if device.identity().kind == "cpu" {
        return native::run(NATIVE_DURATION).weak_instances() > 0;
    }
    // An error recurs in the test, which reports it.
    classic::run(device, Duration::ZERO, timeout).is_ok_and(|seen| seen.weak_instances() > 0)
}
