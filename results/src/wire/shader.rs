//! The part of a run line about a user's shader.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number::format_count;
use crate::state::{State, format_state};
use crate::wire::is_false;

/// The result of repeated dispatches of a shader on a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShaderRun {
    /// The file.
    pub file: String,
    /// The entry point.
    pub entry: String,
    /// Number of workgroups.
    pub grid: [u32; 3],
    /// Invocations per workgroup.
    pub local_size: [u32; 3],
    /// The compiler, with version and flags; absent for SPIR-V.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Whether the set of allowed buffer contents is complete, so that other contents are violations. If
    /// false, the field `allowed` of outcomes has no meaning.
    pub judged: bool,
    /// Why the contents are not judged; null if they are.
    pub why: Option<String>,
    /// True if the source is right in its language, and only the module of its compiler is undefined.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_right_in_language: bool,
    /// The buffers, with their contents before each dispatch.
    pub buffers: Vec<ShaderBuffer>,
    /// Number of distinct contents observed.
    pub different: u64,
    /// Observed contents, most frequent first.
    pub contents: Vec<ContentRecord>,
    /// Dispatches with contents that are not listed.
    pub others: u64,
    /// The claim about all contents; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// Further remarks on how the shader was read.
    pub notes: Vec<String>,
}

/// A buffer of a shader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShaderBuffer {
    /// Descriptor set and binding, with the element of an array: `0.1`, `0.1[2]`.
    pub at: String,
    /// Name in the shader.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of its contents before each dispatch.
    pub hash: String,
}

/// Observed contents of all buffers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentRecord {
    /// Number of dispatches with them.
    pub count: u64,
    /// Hash of all writable buffers.
    pub hash: String,
    /// The first few changed words, by name. The first row is compared with the contents before the dispatch,
    /// the others with the first row.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub differs: State,
    /// Number of changed words; null if unknown.
    pub changed: Option<u64>,
}

/// A claim about all contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRecord {
    /// The claim.
    pub text: String,
    /// Number of dispatches that broke it.
    pub broken: u64,
    /// The first parts that do not hold, for the most frequent contents that break it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<BrokenPart>,
}

/// A part of a claim that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokenPart {
    /// Its formula.
    pub text: String,
    /// Its line in a script, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The values that it uses, by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub found: State,
}

impl ClaimRecord {
    /// Describes how often the claim failed, with the parts that fail and what they found.
    pub fn describe_failure(&self) -> String {
        let describe = |part: &BrokenPart| match part.line {
            Some(line) => format!("`{}` of line {line}", part.text),
            None => format!("`{}`", part.text),
        };
        let failed = match &self.parts[..] {
            [] => format!("`{}`", self.text),
            parts => parts.iter().map(describe).collect::<Vec<_>>().join(" and "),
        };
        let found: State = self.parts.iter().flat_map(|part| part.found.clone()).collect();
        let found = if found.is_empty() { String::new() } else { format!(": {}", format_state(&found)) };
        format!("{failed} failed in {} dispatches{found}", format_count(self.broken))
    }
}
