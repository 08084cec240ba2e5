//! What is wrong with shaders, and what mends it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wrong with a kernel of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRecord {
    /// `race`, `unpublished-read`, `divergent-barrier`, `uninitialised-read`, `out-of-bounds`, `undefined-behaviour`,
    /// `hang`, or `lint:` and a name.
    pub kind: String,
    /// In words.
    pub message: String,
    /// Where, in the order of the message.
    pub at: Vec<FindingPlace>,
    /// Changes of the shader after which, with those of the findings before it, it is gone and nothing else came; none where none
    /// were found or looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mend: Vec<MendRecord>,
}

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MendRecord {
    /// The source where it is made; null where that is not known.
    pub file: Option<String>,
    /// Line, from 1; null where the module has no lines.
    pub line: Option<u32>,
    /// In the words of shaders.
    pub text: String,
}

impl FindingRecord {
    /// A finding without what mends it.
    pub fn new(kind: &str, message: String, at: Vec<FindingPlace>) -> FindingRecord {
        FindingRecord { kind: kind.to_owned(), message, at, mend: Vec::new() }
    }
}

impl MendRecord {
    /// With its place.
    pub fn placed(&self) -> String {
        let line = self.line.map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line}: {}", self.file.as_deref().unwrap_or_default(), self.text)
    }
}

/// A place of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingPlace {
    /// The source that the module's debug lines name, or the file of the module; null where neither is known.
    pub file: Option<String>,
    /// Line, from 1; null where the module has no lines.
    pub line: Option<u32>,
    /// Who is there: local id and workgroup.
    pub invocation: Option<String>,
    /// `read` or `write`, where it is an access.
    pub access: Option<String>,
}
