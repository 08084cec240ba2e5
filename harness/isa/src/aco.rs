//! The hardware program that ACO prints where RADV has no disassembler (GFX6 and GFX7), rewritten as machine text.
//!
//! `s4: %10:s[4-7] = s_load_dwordx4 %9:s[0-1], 16` says what `s_load_dwordx4 s[4:7], s[0:1], 16` does: each temporary stands
//! with the register that it has.

use crate::text::{ParseError, Program};

/// The line before such a program.
pub(crate) const HEADING: &str = "After lowering to hw instructions:";

/// Reads the program from its heading on; `skipped` lines stood before.
pub(crate) fn parse(_text: &str, _skipped: u32) -> Result<Program, ParseError> {
    Err(ParseError::NotDisassembled("the compiler's own form of the program".to_owned()))
}
