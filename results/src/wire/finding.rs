//! Findings in shaders, and fixes for them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{ChangeRecord, ShaderFix};
use crate::write::change::describe_fix;

/// A finding in a user's shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct FindingRecord {
    /// `race`, `unpublished-read`, `divergent-barrier`, `uninitialised-read`, `out-of-bounds`, `undefined-behaviour`,
    /// `hang`, `lost-order` for an order that the compiler lost, or `lint:` and a name.
    pub kind: String,
    /// The cause, which determines the kind; null for lints.
    #[serde(default)]
    pub cause: Option<String>,
    /// The accessed element; null if none is known.
    #[serde(default)]
    pub element: Option<String>,
    /// The message.
    pub message: String,
    /// The positions, in the order of the message.
    pub at: Vec<FindingPlace>,
    /// The changes of the shader that, together with those of earlier findings, remove this finding and add none;
    /// null if none were found or searched.
    #[serde(default)]
    pub change: Option<ShaderFix>,
    /// The same changes as text.
    #[serde(default)]
    pub fix: Option<String>,
    /// The values of chosen inputs that it depends on, by name.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
}

/// The kind of an order that the source language promises and the compiler lost.
pub const LOST_ORDER: &str = "lost-order";

impl FindingRecord {
    /// Returns true for a warning about the compiler: the shader itself is right in its language.
    pub fn is_of_compiler(&self) -> bool {
        self.kind == LOST_ORDER
    }

    /// Creates a finding without fixes.
    pub fn new(kind: &str, message: String, at: Vec<FindingPlace>) -> FindingRecord {
        FindingRecord { kind: kind.to_owned(), message, at, ..FindingRecord::default() }
    }

    /// Returns the changes that remove it; empty if none are known.
    pub fn changes(&self) -> &[ChangeRecord] {
        self.change.as_ref().map_or(&[], |fix| &fix.parts)
    }

    /// Sets the changes that remove it; none if the list is empty.
    pub fn set_changes(&mut self, parts: Vec<ChangeRecord>) {
        self.fix = (!parts.is_empty()).then(|| describe_fix(&parts));
        self.change = (!parts.is_empty()).then_some(ShaderFix { parts });
    }
}

/// A position of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindingPlace {
    /// The source that the module's debug lines name, or the module's file; null if both are unknown.
    pub file: Option<String>,
    /// Line, from 1; null if the module has no line information.
    pub line: Option<u32>,
    /// Word, function and text of the instruction in a module without line information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The invocation: local id and workgroup.
    pub invocation: Option<String>,
    /// The position of its workgroup; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workgroup: Option<[u32; 3]>,
    /// `read` or `write`, if it is an access.
    pub access: Option<String>,
}
