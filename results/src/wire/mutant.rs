//! The record of what a device showed on a mutant of a test.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The observations of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MutantSeen {
    /// Test id.
    pub id: String,
    /// Instances with the outcome that the original test forbids.
    pub seen: u64,
    /// Instances of the mutant.
    pub instances: u64,
}
