//! What a run of a user's shader adds to its line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::State;

/// What became of a shader that was dispatched on a device again and again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShaderRun {
    /// The file.
    pub file: String,
    /// The entry point.
    pub entry: String,
    /// Workgroups.
    pub grid: [u32; 3],
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// What compiled it, with version and flags; absent for SPIR-V.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Whether all contents that the model allows are known, so that others are violations. Where it is false, `allowed` of an
    /// outcome says nothing.
    pub judged: bool,
    /// Why they are not judged; null where they are.
    pub why: Option<String>,
    /// Buffers with their contents before each dispatch.
    pub buffers: Vec<ShaderBuffer>,
    /// Different contents that were seen.
    pub different: u64,
    /// Contents, those that were seen most first.
    pub contents: Vec<ContentRecord>,
    /// Dispatches with contents that are not listed.
    pub others: u64,
    /// What was claimed of all contents; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// What else a reader should know of how the shader was read.
    pub notes: Vec<String>,
}

/// A buffer of a shader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShaderBuffer {
    /// Descriptor set and binding, and the element where it is an array: `0.1`, `0.1[2]`.
    pub at: String,
    /// What the shader calls it.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 hash of its contents before each dispatch.
    pub hash: String,
}

/// Contents that were seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentRecord {
    /// How often.
    pub count: u64,
    /// BLAKE3 hash of all buffers that may be written.
    pub hash: String,
    /// Of the first row the words that differ from what was there before the dispatch, of the others those that differ from the
    /// first row; the first few, by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub differs: State,
    /// How many words differ so; null where that was not kept.
    pub changed: Option<u64>,
}

/// A claim about all contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRecord {
    /// What is claimed.
    pub text: String,
    /// Dispatches that left something else.
    pub broken: u64,
}
