//! Records of `codegen`: compiled kernels, preserved orders, effects of relaxations, and explored machine
//! code.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`CodegenLine`].
pub const CODEGEN_SCHEMA: &str = "vk-litmus/codegen/2";
/// Version of [`CodegenDiffLine`].
pub const CODEGEN_DIFF_SCHEMA: &str = "vk-litmus/codegen-diff/1";

/// Version of [`CodegenExploreLine`].
pub const CODEGEN_EXPLORE_SCHEMA: &str = "vk-litmus/codegen-explore/2";
/// Version of [`MachineCodeLine`].
pub const MACHINE_CODE_SCHEMA: &str = "vk-litmus/machine-code/2";
/// The limitation that every line of `codegen --explore` states.
pub const CODEGEN_EXPLORE_NOTE: &str =
    "found by executing the emitted machine code on an operational model; not observed on hardware";

/// A line of `codegen --format json`: one test on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CodegenLine {
    /// [`CODEGEN_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// Name of the test.
    pub name: String,
    /// Name of the device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// The result for all kernels together.
    pub verdict: CodegenVerdict,
    /// The missing feature, for `skipped`; how the compiler ended, for `crashes`.
    pub reason: Option<String>,
    /// Text of the smallest test on which the compiler ends in the same way; for `crashes`.
    pub reduced: Option<String>,
    /// The kernels, by form.
    pub kernels: Vec<CodegenKernel>,
    /// Forms that the test does not have, with the reason.
    pub unavailable_forms: Vec<UnavailableForm>,
    /// A command that repeats it.
    pub replay: String,
}

/// The result of compiling kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenVerdict {
    /// The driver compiled them.
    #[default]
    Compiles,
    /// The compiler crashed, aborted, hung or returned an error.
    Crashes,
    /// The device lacks a feature, or no form of the test has a kernel.
    Skipped,
}

/// A form that a test does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnavailableForm {
    /// Name of the form.
    pub form: String,
    /// The reason.
    pub why: String,
}

/// A compiled kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenKernel {
    /// Its form: `merged`, `split`, `split.restrict`, `expression.restrict`, `vertex`, `vertex.restrict`,
    /// `fragment`, `fragment.restrict`, `mesh` or `task`.
    pub form: String,
    /// The threads that it executes: `P0,P1`.
    pub kernel: String,
    /// How they use memory: `producer`, `consumer`, `both` or `neither`.
    pub role: String,
    /// The result of compiling it.
    pub verdict: CodegenVerdict,
    /// How the compiler ended, if it failed.
    pub reason: Option<String>,
    /// Compile time in microseconds; null if it failed.
    pub micros: Option<u64>,
    /// The form into which an operation that the device lacks was rewritten for its compiler; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten_form: Option<String>,
    /// Number of machine instructions; null if the driver's text is not machine code.
    pub instructions: Option<u64>,
    /// Why the driver's text is not machine code; null if it is.
    pub not_disassembled: Option<String>,
    /// The driver's statistics, by the driver's names.
    pub statistics: Vec<CodegenStatistic>,
    /// The machine code with `--emit asm`, else empty.
    pub code: Vec<CodegenCode>,
    /// The driver's intermediate representations with `--emit ir`, else empty.
    pub forms: Vec<CodegenForm>,
    /// The memory orders of the test and their implementation, with `--emit order`; else empty and absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<CodegenOrder>,
}

/// Two accesses that the test orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenOrder {
    /// `acquire` or `release`.
    pub order: String,
    /// The scope, as in tests: `dv`, `wg`.
    pub scope: String,
    /// The first access, as in `P1.0: ld.atom.acq.dv.sc0.semsc0 r0, f`.
    pub first: String,
    /// The second access.
    pub second: String,
    /// How machine code implements the order.
    pub code: CodegenOrdered,
    /// How NIR, Mesa's intermediate representation, implements it; null if not examined.
    pub nir: Option<CodegenOrdered>,
}

/// How code implements an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenOrdered {
    /// The verdict.
    pub verdict: CodegenOrderVerdict,
    /// The reason: the instructions found or missing.
    pub why: String,
    /// The document that states the requirement; null if there is none.
    pub source: Option<String>,
    /// True if one load stands for two, across what orders them.
    #[serde(default)]
    pub is_merged: bool,
}

closed_enum! {
    /// The verdict on an order in machine code; the last one of several parts decides.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CodegenOrderVerdict {
        /// The code orders what the source does not.
        Stronger = "stronger",
        /// All required operations are present.
        Kept = "kept",
        /// Some of them are present.
        Weakened = "weakened",
        /// The requirement is unknown, or the accesses cannot be identified in the text.
        Unknown = "unknown",
        /// No table covers what orders them, such as workgroup memory or control barriers of some vendors.
        NotCovered = "not covered",
        /// No operation orders the two accesses, or they are in the opposite order.
        Lost = "lost",
    }
}

impl CodegenOrdered {
    /// Creates a verdict without the document of a requirement.
    pub fn new(verdict: CodegenOrderVerdict, why: impl Into<String>) -> CodegenOrdered {
        CodegenOrdered { verdict, why: why.into(), source: None, is_merged: false }
    }
}

/// A statistic of the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenStatistic {
    /// The driver's name for it.
    pub name: String,
    /// Its value.
    pub value: f64,
}

/// A line of machine code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenCode {
    /// The line.
    pub text: String,
    /// The thread and instruction of the test that it comes from, as in `P0.1: st.atom.rel.dv.sc0.semsc0 y,
    /// 1`; `P0: results` for stores of results; null if it belongs to neither.
    pub source: Option<String>,
    /// The orders that it implements, or how it accesses memory, in words; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// An intermediate representation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenForm {
    /// The driver's name for it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A line of `codegen --emit diff --format json`: a relaxation of a test, in one form on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenDiffLine {
    /// [`CODEGEN_DIFF_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// Name of the device.
    pub device: String,
    /// The form of the kernels.
    pub form: String,
    /// The shape of the test: the part of its name before `+`.
    pub shape: String,
    /// The relaxed instruction and the change: `P0.1: relaxed`.
    pub step: String,
    /// The kind of the relaxation: the step without its instruction.
    pub relaxation: String,
    /// Whether the test needs the relaxed operation: without it the forbidden outcome is allowed, or the
    /// program races. Null if the model gives no answer.
    pub needed: Option<bool>,
    /// The effect of the relaxation.
    pub verdict: CodegenDiffVerdict,
    /// The effect in detail: `same`, `schedule` or `differs`; for `skipped` the missing feature.
    pub detail: String,
}

/// The effect of a relaxation on machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenDiffVerdict {
    /// No change that concerns memory. This is evidence, and never a failure by itself.
    NoEffect,
    /// Accesses, their bits, waits or barriers changed.
    Differs,
    /// One of the two has no machine code.
    Skipped,
}

/// A line of `codegen --explore --format json`: one form of a test on one device, under one profile of
/// hardware guarantees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenExploreLine {
    /// [`CODEGEN_EXPLORE_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// Name of the device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// The form of the kernels.
    pub form: String,
    /// The model that defines which outcomes are forbidden.
    pub model: String,
    /// The assumed hardware guarantees: `documented`, `lagging` or `paranoid`; empty if nothing was explored.
    pub profile: String,
    /// The result.
    pub verdict: CodegenExploreVerdict,
    /// The unsupported instruction, missing feature or early register use; null for other results.
    pub detail: Option<String>,
    /// Ids of the hardware facts on which the result depends.
    pub assumptions: Vec<String>,
    /// Number of explored placements of workgroups on compute units.
    pub placements: u32,
    /// Number of visited states.
    pub states: u64,
    /// An execution with a forbidden outcome; for `reachable`.
    pub witness: Option<CodegenWitness>,
    /// [`CODEGEN_EXPLORE_NOTE`].
    pub note: String,
    /// A command that repeats it.
    pub replay: String,
}

closed_enum! {
    /// The verdict on forbidden outcomes of machine code.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum CodegenExploreVerdict {
        /// No placement and no interleaving produces one.
        Unreachable = "unreachable",
        /// Some placement and interleaving produces one.
        Reachable = "reachable",
        /// A register is used before the load that writes it is known to be complete.
        Hazard = "hazard",
        /// An instruction is unsupported, or there are too many states.
        Unsupported = "unsupported",
        /// Nothing was explored: the program races, the device lacks a feature, or no kernel was compiled.
        Skipped = "skipped",
    }
}

/// An execution with a forbidden outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenWitness {
    /// Result words: the observed values in the test's order, then the words that mark threads as ended.
    pub outcome: Vec<u64>,
    /// The compute unit of each wave, by workgroup.
    pub units: Vec<Vec<u8>>,
    /// The shader array of each compute unit.
    pub arrays: Vec<u8>,
    /// The steps, in order.
    pub steps: Vec<CodegenStep>,
}

/// A step of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenStep {
    /// Index of the workgroup, counted over all kernels.
    pub workgroup: u64,
    /// Index of the wave in it.
    pub wave: u64,
    /// The threads of the kernel.
    pub kernel: String,
    /// The line of machine code.
    pub code: String,
    /// The effect of the step.
    pub effect: String,
}

/// The transformations that a violation in a transformed form of a test needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NeededTransformations {
    /// The id of the test in the smallest form that was found.
    pub id: String,
    /// Names of transformations, in the order in which they apply.
    pub names: Vec<String>,
    /// A command that runs this form.
    pub replay: String,
}

/// A line of `machine-code.jsonl` in a results folder: compiled code of a violating test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MachineCodeLine {
    /// [`MACHINE_CODE_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// Name of the device, as in run lines.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// Why there is no code: the extension that the driver lacks, or how its compiler ended. Null if there is
    /// code.
    pub no_code_reason: Option<String>,
    /// Kernels with only the threads of the test and constant parameters, with the source instruction of each
    /// line.
    pub kernels: Vec<CodegenKernel>,
    /// The kernels that ran, with parameters and rounds, as the driver prints them; named by their threads.
    pub ran: Vec<CodegenForm>,
    /// A command that prints `kernels` again.
    pub replay: String,
    /// For a transformed form, the transformations that its violation needs, if they were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transformations: Option<NeededTransformations>,
}

/// Version of [`CodegenEditLine`].
pub const CODEGEN_EDIT_SCHEMA: &str = "vk-litmus/codegen-edit/1";

/// A line of `codegen --explore --edits --format json`: a mutation of machine code, with one instruction or
/// bit removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenEditLine {
    /// [`CODEGEN_EDIT_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// Name of the device.
    pub device: String,
    /// The form of the kernels.
    pub form: String,
    /// The threads of the kernel.
    pub kernel: String,
    /// The original instruction.
    pub code: String,
    /// The removed part: `barrier`, `vector wait`, `store wait`, `LDS wait`, `scalar wait`, `load bit`, `load
    /// dlc`, `store bit` or `invalidate`.
    pub edit: String,
    /// Whether the explorer detects the mutation.
    pub caught: bool,
    /// `reachable` or `hazard`; `survives: ` with the reason; or `unsupported: ` with the instruction.
    pub fate: String,
}
