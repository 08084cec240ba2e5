//! Threads that a driver starts, and how soon the system lets them in.
//!
//! A CPU driver computes in threads of this process. Where others want the same processors, whoever wakes waits its turn, which
//! comes after some milliseconds and not at the same time on all processors: then the threads of a test hardly ever run at
//! once. Linux since 6.12 lets a thread ask for shorter slices of time than others have. It gets no more time for them, but
//! its turn as soon as it wakes.

/// Slices that threads of a CPU driver ask for, in nanoseconds: the shortest that there are.
#[cfg(target_os = "linux")]
const SHORT: u64 = 100_000;

/// The calling thread, and every thread that it starts from now on, asks for short slices. Where the system has no such thing, or
/// forbids it, all stays as it was.
#[cfg(target_os = "linux")]
pub fn ask_for_short() {
    let ordinary = linux::get().filter(|attributes| attributes.policy == linux::ORDINARY);
    let asked = ordinary.is_some_and(|before| linux::set(&linux::Attributes { runtime: SHORT, ..before }));
    tracing::debug!(asked, "short slices");
}

/// Nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn ask_for_short() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_uint};

    /// The policy of threads that have no other.
    pub const ORDINARY: u32 = 0;

    /// What the system calls `sched_attr`, in its first form.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Attributes {
        pub size: u32,
        pub policy: u32,
        pub flags: u64,
        pub nice: i32,
        pub priority: u32,
        /// For ordinary threads the length of their slices; 0 for as long as others have.
        pub runtime: u64,
        pub deadline: u64,
        pub period: u64,
    }

    const SIZE: u32 = size_of::<Attributes>() as u32;
    /// The calling thread.
    const SELF: c_int = 0;
    const NO_FLAGS: c_uint = 0;

    /// Those of the calling thread; none where the system does not tell.
    pub fn get() -> Option<Attributes> {
        let mut attributes = Attributes::default();
        let place: *mut Attributes = &mut attributes;
        // SAFETY: the system writes at most `SIZE` bytes, and `attributes` has them.
        let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, SELF, place, SIZE, NO_FLAGS) };
        (answer == 0).then_some(attributes)
    }

    /// Sets those of the calling thread; false where the system does not.
    pub fn set(attributes: &Attributes) -> bool {
        let attributes = Attributes { size: SIZE, ..*attributes };
        let place: *const Attributes = &attributes;
        // SAFETY: the system reads the `SIZE` bytes that `attributes` has.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, place, NO_FLAGS) };
        answer == 0
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn of_a_new_thread(begin: fn()) -> (Option<linux::Attributes>, Option<linux::Attributes>) {
        let ask = move || {
            begin();
            (linux::get(), std::thread::spawn(linux::get).join().unwrap())
        };
        std::thread::spawn(ask).join().unwrap()
    }

    /// Linux before 6.12 takes what is asked for, and tells of no slices.
    #[test]
    fn a_thread_and_those_that_it_starts_ask_for_short_slices_and_for_nothing_else() {
        let Some(before) = linux::get() else {
            println!("skipped: this system tells nothing of how threads are scheduled");
            return;
        };
        assert_eq!(of_a_new_thread(|| {}), (Some(before), Some(before)));
        let (own, started) = of_a_new_thread(ask_for_short);
        assert_eq!(own, started);
        let own = own.unwrap();
        assert_eq!(linux::Attributes { runtime: before.runtime, ..own }, before);
        assert_eq!(own.runtime, if before.runtime == 0 { 0 } else { SHORT });
        // Who did not ask has what it had.
        assert_eq!(linux::get(), Some(before));
    }
}
