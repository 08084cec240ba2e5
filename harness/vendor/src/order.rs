//! The instructions that an order of the memory model requires between two accesses, as tables by vendor.
//!
//! A table lists the instructions that its compiler emits, or that the vendor of the hardware or compiler
//! documents, with the source. Cases without a row are unknown.

use crate::line::CodeOperation;

/// An order that a test requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Accesses after an acquire are not performed before it.
    Acquire,
    /// Accesses before a release are performed before it.
    Release,
}

#[derive(Clone, Copy, Debug)]
pub struct OrderRequirement {
    pub order: Order,
    /// The operations of the first access.
    pub first_operations: &'static [CodeOperation],
    /// Prefixes of the compiler targets that it applies to; empty means all.
    pub targets: &'static [&'static str],
    /// The required instructions, in order.
    pub steps: &'static [RequirementPart],
    pub source: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub struct RequirementPart {
    /// The lines in which it is required.
    pub place: RequirementPosition,
    /// Alternative substrings of lines that fulfil it.
    pub alternatives: &'static [&'static str],
    /// Substrings of lines that may fulfil it, at least partly: then the verdict is unknown.
    pub uncertain_alternatives: &'static [&'static str],
    /// The consequence if it is missing.
    pub if_missing: MissingOperation,
    pub description: &'static str,
}

/// The lines where a part of a requirement must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequirementPosition {
    /// On a line between the two accesses, or before the second on its own line.
    Between,
    /// On the line of the second access, if that is a load.
    SecondLoad,
    /// On neither line of the two accesses; its presence makes the verdict uncertain.
    OnNeither,
}

/// The verdict if a part is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingOperation {
    /// Lost: nothing orders the two accesses.
    Lost,
    /// Weakened: part of the ordering is present.
    Weakened,
    Unknown,
}

/// Creates a part between the two accesses that is necessary for any order.
pub(crate) const fn required_between(any: &'static [&'static str], words: &'static str) -> RequirementPart {
    RequirementPart {
        place: RequirementPosition::Between,
        alternatives: any,
        uncertain_alternatives: &[],
        if_missing: MissingOperation::Lost,
        description: words,
    }
}

/// Returns the resource number of each line, in binding order, to distinguish accesses of one kind.
pub type ResourceNumbers = fn(&[&str]) -> Vec<Option<u64>>;

/// Returns no resource numbers, for dialects that show none.
pub fn no_resource_numbers(lines: &[&str]) -> Vec<Option<u64>> {
    vec![None; lines.len()]
}

/// Returns the decimal number after a word in a line.
pub(crate) fn number_after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}
