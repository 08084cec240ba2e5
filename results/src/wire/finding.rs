//! Findings in shaders, and fixes for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A finding in a user's shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRecord {
    /// `race`, `unpublished-read`, `divergent-barrier`, `uninitialised-read`, `out-of-bounds`, `undefined-behaviour`,
    /// `hang`, or `lint:` and a name.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The positions, in the order of the message.
    pub at: Vec<FindingPlace>,
    /// Changes of the shader that, together with those of earlier findings, remove this finding and add none.
    /// Empty if none were found or searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mend: Vec<MendRecord>,
}

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MendRecord {
    /// The source file; null if unknown.
    pub file: Option<String>,
    /// Line, from 1; null if the module has no line information.
    pub line: Option<u32>,
    /// The change, as shader code.
    pub text: String,
    /// The edits of the file that make this change and those that it needs; empty if the change is only known
    /// in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EditRecord>,
}

/// A replacement of whole lines of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditRecord {
    /// The first replaced line, from 1; without replaced lines, the line before which the text is inserted.
    pub line: u32,
    /// Number of replaced lines.
    pub removed: u32,
    /// The new lines, with their ends.
    pub text: String,
}

impl FindingRecord {
    /// Creates a finding without fixes.
    pub fn new(kind: &str, message: String, at: Vec<FindingPlace>) -> FindingRecord {
        FindingRecord { kind: kind.to_owned(), message, at, mend: Vec::new() }
    }
}

impl MendRecord {
    /// Formats the change with its position.
    pub fn format_with_position(&self) -> String {
        let line = self.line.map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line}: {}", self.file.as_deref().unwrap_or_default(), self.text)
    }
}

/// A position of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingPlace {
    /// The source that the module's debug lines name, or the module's file; null if both are unknown.
    pub file: Option<String>,
    /// Line, from 1; null if the module has no line information.
    pub line: Option<u32>,
    /// The invocation: local id and workgroup.
    pub invocation: Option<String>,
    /// `read` or `write`, if it is an access.
    pub access: Option<String>,
}
