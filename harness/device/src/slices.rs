//! Scheduling of driver threads: requests short time slices.
//!
//! A CPU driver computes in threads of this process. On a busy machine, a woken thread waits some
//! milliseconds for its turn, at different times on different processors, so the threads of a test rarely run
//! simultaneously. Since Linux 6.12 a thread can request shorter slices. It then gets the same share of time,
//! but runs as soon as it wakes.

/// The requested slice in nanoseconds, the system's minimum.
#[cfg(target_os = "linux")]
const SHORT_SLICE_NS: u64 = 100_000;

/// Requests short time slices for the calling thread and for all threads that it starts later.
///
/// Without support or permission, nothing changes.
#[cfg(target_os = "linux")]
pub fn request_short_slices() {
    let ordinary = linux::get().filter(|attributes| attributes.policy == linux::ORDINARY);
    let is_granted =
        ordinary.is_some_and(|before| linux::set(&linux::Attributes { runtime: SHORT_SLICE_NS, ..before }));
    tracing::debug!(is_granted, "short slices");
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn request_short_slices() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_uint};

    /// The default scheduling policy.
    pub const ORDINARY: u32 = 0;

    /// `sched_attr` of Linux in its first version.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Attributes {
        pub size: u32,
        pub policy: u32,
        pub flags: u64,
        pub nice: i32,
        pub priority: u32,
        /// For the default policy, the slice length; 0 for the default length.
        pub runtime: u64,
        pub deadline: u64,
        pub period: u64,
    }

    const SIZE: u32 = size_of::<Attributes>() as u32;
    const SELF: c_int = 0;
    const NO_FLAGS: c_uint = 0;

    /// Returns the attributes of the calling thread; `None` if the system does not report them.
    pub fn get() -> Option<Attributes> {
        let mut attributes = Attributes::default();
        let place: *mut Attributes = &mut attributes;
        // SAFETY: the system writes at most `SIZE` bytes, and `attributes` has them.
        let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, SELF, place, SIZE, NO_FLAGS) };
        (answer == 0).then_some(attributes)
    }

    /// Sets the attributes of the calling thread; returns false on failure.
    pub fn set(attributes: &Attributes) -> bool {
        let attributes = Attributes { size: SIZE, ..*attributes };
        let place: *const Attributes = &attributes;
        // SAFETY: the system reads `SIZE` bytes, the size of `attributes`.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, place, NO_FLAGS) };
        answer == 0
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn attributes_in_new_thread(begin: fn()) -> (Option<linux::Attributes>, Option<linux::Attributes>) {
        let read_attributes = move || {
            begin();
            (linux::get(), std::thread::spawn(linux::get).join().unwrap())
        };
        std::thread::spawn(read_attributes).join().unwrap()
    }

    /// Linux before 6.12 accepts the request, and reports no slices.
    #[test]
    fn threads_and_their_children_request_short_time_slices() {
        let Some(before) = linux::get() else {
            println!("skipped: this system does not report how threads are scheduled");
            return;
        };
        assert_eq!(attributes_in_new_thread(|| {}), (Some(before), Some(before)));
        let (own, started) = attributes_in_new_thread(request_short_slices);
        assert_eq!(own, started);
        let own = own.unwrap();
        assert_eq!(linux::Attributes { runtime: before.runtime, ..own }, before);
        assert_eq!(own.runtime, if before.runtime == 0 { 0 } else { SHORT_SLICE_NS });
        // The calling thread itself is unchanged.
        assert_eq!(linux::get(), Some(before));
    }
}
