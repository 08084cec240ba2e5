//! The instructions that an order of the memory model requires between two accesses, as tables by vendor.
//!
//! A table lists the instructions that its compiler emits, or that the vendor of the hardware or compiler
//! documents, with the source. Cases without a row are unknown.

use serde::Deserialize;

use crate::line::CodeOperation;

/// An order that a test requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Accesses after an acquire are not performed before it.
    Acquire,
    /// Accesses before a release are performed before it.
    Release,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRequirement {
    pub order: Order,
    /// The operations of the first access; empty means all.
    #[serde(default)]
    first_operations: Vec<CodeOperation>,
    /// Prefixes of the compiler targets that it applies to; empty means all.
    #[serde(default)]
    targets: Vec<String>,
    /// The names of the required parts, in order.
    pub steps: Vec<String>,
    pub source: String,
}

impl OrderRequirement {
    /// Returns true if this requirement is that of an order on a compiler target. Without an operation, those
    /// of the first access do not matter.
    pub fn applies_to(&self, order: Order, operation: Option<CodeOperation>, target: &str) -> bool {
        self.order == order
            && operation.is_none_or(|known| {
                self.first_operations.is_empty() || self.first_operations.contains(&known)
            })
            && (self.targets.is_empty() || self.targets.iter().any(|start| target.starts_with(start)))
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequirementPart {
    /// The lines in which it is required.
    pub place: RequirementPosition,
    /// Alternative substrings of lines that fulfil it.
    pub alternatives: Vec<String>,
    /// Substrings of lines that may fulfil it, at least partly: then the verdict is unknown.
    #[serde(default)]
    pub uncertain_alternatives: Vec<String>,
    /// The consequence if it is missing.
    pub if_missing: MissingOperation,
    pub description: String,
}

/// The lines where a part of a requirement must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequirementPosition {
    /// On a line between the two accesses, or before the second on its own line.
    Between,
    /// On the line of the second access, if that is a load.
    SecondLoad,
    /// On neither line of the two accesses; its presence makes the verdict uncertain.
    OnNeither,
}

/// The verdict if a part is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingOperation {
    /// Lost: nothing orders the two accesses.
    Lost,
    /// Weakened: part of the ordering is present.
    Weakened,
    Unknown,
}

/// Returns the decimal number after a word in a line.
pub(crate) fn number_after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}
