//! The record of a recorded program, and its hazards.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`RecordingRecord`].
pub const RECORDING_SCHEMA: &str = "vk-litmus/recording/1";
/// Version of [`JudgementLine`].
pub const JUDGEMENT_SCHEMA: &str = "vk-litmus/judgement/1";
/// Version of [`HazardLine`].
pub const HAZARD_SCHEMA: &str = "vk-litmus/hazard/1";

/// `recording.json`: what a program did on Vulkan devices, and which of its dispatches have cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingRecord {
    /// [`RECORDING_SCHEMA`].
    pub schema: String,
    /// The program with its arguments.
    pub program: Vec<String>,
    /// The end of the program: `exit N` or `signal N`.
    pub end: String,
    /// True if it did not end with exit code 0.
    #[serde(default)]
    pub has_failed: bool,
    /// Its processes that used Vulkan.
    pub processes: Vec<RecordedProcess>,
    /// The kinds of dispatches: equal module, entry point, constants, grid and layout of descriptors.
    pub kinds: Vec<RecordedKind>,
    /// Executed dispatches.
    pub dispatches: u64,
    /// Executed commands whose accesses are not recorded, by name.
    pub unrecorded: Vec<UnrecordedCommand>,
}

/// A process that used Vulkan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedProcess {
    /// Its number.
    pub process: u32,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// Its queues.
    pub queues: Vec<RecordedQueue>,
    /// Its buffers and images.
    pub resources: Vec<RecordedResource>,
    /// The commands, in the order of their submissions.
    pub commands: Vec<RecordedCommand>,
    /// True if the end of its journal is missing: it crashed, or the disk was full.
    pub is_truncated: bool,
}

/// A queue of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedQueue {
    /// Its id.
    pub queue: u64,
    /// Queue family.
    pub family: u32,
    /// Index in the family.
    pub index: u32,
}

/// A buffer or an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedResource {
    /// Its id.
    pub id: u64,
    /// `buffer` or `image`.
    pub kind: String,
    /// The name that the program gave it, or else a shader.
    pub name: Option<String>,
    /// Size in bytes; null for images.
    pub size: Option<u64>,
}

/// An executed command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCommand {
    /// Its number in the process.
    pub index: u64,
    /// The queue.
    pub queue: u64,
    /// Number of its submission in the process.
    pub submission: u64,
    /// The command.
    pub what: String,
    /// The innermost label around it.
    pub label: Option<String>,
    /// Number of its kind, for a dispatch.
    pub kind: Option<u64>,
    /// True for a barrier without a layout transition.
    #[serde(default)]
    pub is_barrier: bool,
}

/// A kind of dispatches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RecordedKind {
    /// Its number, which names the folder `kinds/N`.
    pub kind: u64,
    /// Entry point.
    pub entry: String,
    /// The name that the program gave the pipeline or the module.
    #[serde(default)]
    pub name: Option<String>,
    /// Hash of the module.
    pub module: String,
    /// Executed dispatches.
    pub dispatches: u64,
    /// The label around the first dispatch.
    pub label: Option<String>,
    /// The case files, relative to the recording. Empty if the contents were not recorded.
    pub cases: Vec<String>,
    /// Inputs that the cases lack.
    pub missing: Vec<String>,
}

/// Commands whose accesses are not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnrecordedCommand {
    /// The command.
    pub what: String,
    /// Number of executions.
    pub count: u64,
}

/// Two commands that access the same bytes without the order that the accesses need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HazardLine {
    /// [`HAZARD_SCHEMA`].
    pub schema: String,
    /// The process.
    #[serde(default)]
    pub process: u32,
    /// The accesses.
    pub kind: HazardKind,
    /// The earlier and the later command. The later one is absent for a write of the host, the earlier one for a layout that no transition set.
    pub commands: Vec<HazardCommand>,
    /// The name or the id of the resource.
    pub resource: String,
    /// First byte of the resource that both access, and the byte after the last one. Null for images.
    pub bytes: Option<[u64; 2]>,
    /// The part of the order that is missing.
    pub missing: String,
    /// The place of the fix; empty if the fix names it.
    #[serde(default)]
    pub place: String,
    /// A barrier or a dependency that adds it, as C code.
    pub fix: String,
    /// True if one of the commands may access the bytes, and need not. It is not a finding.
    #[serde(default)]
    pub is_possible: bool,
    /// True for a possible hazard of which nothing suggests that it is one. It changes no exit code.
    #[serde(default)]
    pub is_information: bool,
    /// Number of executions of the two command lists in this way.
    pub count: u64,
    /// Other hazards that the same barrier orders.
    #[serde(default)]
    pub also: Vec<OtherHazard>,
}

/// A hazard that the barrier of another one orders, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherHazard {
    /// The accesses.
    pub kind: HazardKind,
    /// The earlier and the later command.
    pub commands: Vec<HazardCommand>,
    /// The name or the id of the resource.
    pub resource: String,
}

closed_enum! {
    /// The accesses of a hazard.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum HazardKind {
        /// Two writes.
        WriteAfterWrite = "write after write",
        /// A read of what a write leaves.
        ReadAfterWrite = "read after write",
        /// A write to what a read needs.
        WriteAfterRead = "write after read",
        /// A command and the host.
        Host = "host access",
        /// A use of an image in another layout, or of contents that a transition discarded.
        Layout = "image layout",
        /// A use of contents that another queue family owns.
        Ownership = "queue family ownership",
    }
}

/// A command of a hazard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HazardCommand {
    /// Its number in the process.
    pub index: u64,
    /// The innermost label around it.
    pub label: Option<String>,
    /// The command.
    pub what: String,
}

/// The judged and the unjudged commands of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgementLine {
    /// [`JUDGEMENT_SCHEMA`].
    pub schema: String,
    /// Executed commands that access memory.
    pub commands: u64,
    /// Those whose accesses and order were judged.
    pub judged_commands: u64,
    /// Executed dispatches.
    pub dispatches: u64,
    /// Those that were judged for races and for order.
    pub judged_dispatches: u64,
    /// Those that were judged by the case of an equal dispatch, because the contents that decide what they access are the same.
    pub dispatches_by_equal_case: u64,
    /// Hazards between commands.
    pub hazards: u64,
    /// Pairs of commands without order of which one may access the bytes, and need not.
    pub possible_hazards: u64,
    /// Everything that was not judged.
    pub unjudged: Vec<UnjudgedCommand>,
    /// Recorded barriers whose effect is known.
    #[serde(default)]
    pub checked_barriers: u64,
    /// Those of them without an effect on the recorded accesses. All of them can be removed together.
    #[serde(default)]
    pub redundant_barriers: Vec<RedundantBarrierRecord>,
}

/// A barrier without which the recorded commands have the same hazards. It is not a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedundantBarrierRecord {
    /// The process.
    pub process: u32,
    /// Number of its first execution in the process.
    pub index: u64,
    /// The innermost label around it.
    pub label: Option<String>,
    /// Its scopes.
    pub what: String,
    /// Number of executions.
    pub count: u64,
}

/// Commands that were not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnjudgedCommand {
    /// The command.
    pub what: String,
    /// Why it was not judged.
    pub why: String,
    /// Number of executions.
    pub count: u64,
    /// The process of the first one.
    pub process: u32,
    /// Number of the first one in its process; null if this is no command.
    pub first: Option<u64>,
}
