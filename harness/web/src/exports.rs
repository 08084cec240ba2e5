//! The functions that JavaScript calls, over one buffer in linear memory.
//!
//! A caller reserves the length of its request, writes the request as UTF-8 at the returned address, calls
//! [`answer`], and reads that many bytes at [`answer_address`]. Each call may move the memory, so that views
//! of it have to be created after the call. No function reads through a pointer: the buffer belongs to a
//! `Vec`, and the only unsafe part is to give symbols their names, which the attributes below do.
#![expect(unsafe_code, reason = "names of exported symbols are attributes that count as unsafe")]

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The request, and after [`answer`] the answer.
static EXCHANGE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn exchange() -> MutexGuard<'static, Vec<u8>> {
    EXCHANGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a request of this many bytes and returns its address.
// SAFETY: no other symbol of the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn request_address(length: usize) -> *mut u8 {
    let mut exchange = exchange();
    *exchange = vec![0; length];
    exchange.as_mut_ptr()
}

/// Answers the request and returns the length of the answer in bytes.
// SAFETY: no other symbol of the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let mut exchange = exchange();
    *exchange = crate::answer(&String::from_utf8_lossy(&exchange)).into_bytes();
    exchange.len()
}

/// Returns the address of the answer.
// SAFETY: no other symbol of the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn answer_address() -> *const u8 {
    exchange().as_ptr()
}
