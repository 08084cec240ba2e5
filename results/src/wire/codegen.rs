//! What is published about machine code: what became of a test's kernels, and what relaxing the test changes in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of [`CodegenLine`].
pub const CODEGEN_SCHEMA: &str = "vk-litmus/codegen/1";
/// Version of [`CodegenDiffLine`].
pub const CODEGEN_DIFF_SCHEMA: &str = "vk-litmus/codegen-diff/1";

/// Version of [`CodegenExploreLine`].
pub const CODEGEN_EXPLORE_SCHEMA: &str = "vk-litmus/codegen-explore/1";
/// Version of [`MachineCodeLine`].
pub const MACHINE_CODE_SCHEMA: &str = "vk-litmus/machine-code/1";
/// What every line of `codegen --explore` rests on.
pub const CODEGEN_EXPLORE_NOTE: &str =
    "found by executing the emitted machine code on an operational model; not observed on hardware";

/// A line of `codegen --format json`: a test on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenLine {
    /// [`CODEGEN_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The test's name.
    pub name: String,
    /// The device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// What became of the kernels, all together.
    pub verdict: CodegenVerdict,
    /// What is missing, for `skipped`; how the compiler ended, for `crashes`.
    pub reason: Option<String>,
    /// The smallest test on which the compiler ends in the same way, as text; for `crashes`.
    pub reduced: Option<String>,
    /// The kernels, form by form.
    pub kernels: Vec<CodegenKernel>,
    /// Forms that the test does not have, and why.
    pub without: Vec<CodegenWithout>,
    /// A command that does it again.
    pub replay: String,
}

/// What became of kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenVerdict {
    /// The driver compiled them.
    #[default]
    Compiles,
    /// The compiler crashed, aborted, hung or gave an error.
    Crashes,
    /// The device lacks something, or no form of the test has a kernel.
    Skipped,
}

/// A form that a test does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenWithout {
    /// The form.
    pub form: String,
    /// Why.
    pub why: String,
}

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenKernel {
    /// Its form: `merged`, `split`, `split.restrict`, `expression.restrict`, `vertex`, `vertex.restrict`, `fragment`, `fragment.restrict`, `mesh` or `task`.
    pub form: String,
    /// The threads that it plays: `P0,P1`.
    pub kernel: String,
    /// What they do to memory: `producer`, `consumer`, `both` or `neither`.
    pub role: String,
    /// What became of it.
    pub verdict: CodegenVerdict,
    /// How the compiler ended, where it did not compile.
    pub reason: Option<String>,
    /// Time that the driver took, in microseconds; null where it did not compile.
    pub micros: Option<u64>,
    /// How something of it is told that the device lacks and its compiler takes in another form; not written where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Machine instructions; null where the driver's text is no machine code.
    pub instructions: Option<u64>,
    /// Why the driver's text is no machine code; null where it is.
    pub not_disassembled: Option<String>,
    /// The driver's figures, by the driver's names.
    pub statistics: Vec<CodegenStatistic>,
    /// The machine code with `--emit asm`, else empty.
    pub code: Vec<CodegenCode>,
    /// The driver's forms of the code with `--emit ir`, else empty.
    pub forms: Vec<CodegenForm>,
    /// The orders that the test asks for, with what became of them, with `--emit order`; else empty and not written.
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
    /// The second.
    pub second: String,
    /// What became of it in machine code.
    pub code: CodegenOrdered,
    /// What became of it in NIR, Mesa's form that all its compilers share; null where that is not looked at.
    pub nir: Option<CodegenOrdered>,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenOrdered {
    /// The verdict.
    pub verdict: CodegenOrderVerdict,
    /// What is there, or missing.
    pub why: String,
    /// Who says what is needed; null where nobody does.
    pub source: Option<String>,
}

/// Whether an order is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodegenOrderVerdict {
    /// All that it needs is there.
    Kept,
    /// Part of it is there.
    Weakened,
    /// Nothing orders the two accesses, or they stand the other way round.
    Lost,
    /// Nothing says what it needs, or the text does not tell the accesses apart.
    Unknown,
}

/// A figure of the driver.
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
    /// The thread and the instruction of the test that it comes from, as in `P0.1: st.atom.rel.dv.sc0.semsc0 y, 1`; `P0:
    /// results` where it writes results down; null where it belongs to none.
    pub source: Option<String>,
    /// What it orders, or how it accesses memory, in words; not written where there is nothing to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// A form of the code.
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
    /// The device.
    pub device: String,
    /// The form of the kernels.
    pub form: String,
    /// The shape of the test: what stands before `+` in its name.
    pub shape: String,
    /// Where the test is relaxed, and how: `P0.1: relaxed`.
    pub step: String,
    /// The kind of the relaxation: the step without its place.
    pub relaxation: String,
    /// Whether the model needs what is relaxed: without it the forbidden outcome is allowed, or the program races. Null
    /// where the model does not answer.
    pub needed: Option<bool>,
    /// What the relaxation changes.
    pub verdict: CodegenDiffVerdict,
    /// In more detail: `same`, `schedule` or `differs`; for `skipped` what is missing.
    pub detail: String,
}

/// What a relaxation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenDiffVerdict {
    /// Nothing that has to do with memory. Evidence, and never a failure by itself.
    NoEffect,
    /// Accesses, their bits, waits or barriers.
    Differs,
    /// One of the two has no machine code to compare.
    Skipped,
}

/// A line of `codegen --explore --format json`: a form of a test on a device, under one profile of what the hardware
/// promises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenExploreLine {
    /// [`CODEGEN_EXPLORE_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// The form of the kernels.
    pub form: String,
    /// The model whose forbidden outcomes are looked for.
    pub model: String,
    /// What is believed of the hardware: `documented`, `lagging` or `paranoid`; empty where nothing was explored.
    pub profile: String,
    /// The answer.
    pub verdict: CodegenExploreVerdict,
    /// What is unsupported, missing or read too early; null for other answers.
    pub detail: Option<String>,
    /// Ids of the facts about the hardware that the answer rests on.
    pub assumptions: Vec<String>,
    /// Placements of workgroups over compute units that were explored.
    pub placements: u32,
    /// States that were visited.
    pub states: u64,
    /// How a forbidden outcome comes about; for `reachable`.
    pub witness: Option<CodegenWitness>,
    /// [`CODEGEN_EXPLORE_NOTE`].
    pub note: String,
    /// A command that does it again.
    pub replay: String,
}

/// Whether machine code can show a forbidden outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CodegenExploreVerdict {
    /// No placement and no interleaving shows one.
    Unreachable,
    /// One does.
    Reachable,
    /// A register is used before the load that writes it is known to be complete.
    Hazard,
    /// The machine does not know an instruction, or there are too many states.
    Unsupported,
    /// There is nothing to explore: the program races, the device lacks something, or no kernel was compiled.
    Skipped,
}

/// How a forbidden outcome comes about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenWitness {
    /// The words of the outcome: what the test observes, in its order, then what says that threads have ended.
    pub outcome: Vec<u64>,
    /// The compute unit of each wave, by workgroup.
    pub units: Vec<Vec<u8>>,
    /// The shader array of each compute unit.
    pub arrays: Vec<u8>,
    /// What happened, in order.
    pub steps: Vec<CodegenStep>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenStep {
    /// The workgroup, counted over all kernels.
    pub workgroup: u64,
    /// The wave in it.
    pub wave: u64,
    /// The threads whose kernel it is.
    pub kernel: String,
    /// The line of the machine code.
    pub code: String,
    /// What happened to it.
    pub what: String,
}

/// A line of `machine-code.jsonl` in a results folder: what the driver's compiler made of a test that violates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineCodeLine {
    /// [`MACHINE_CODE_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The device, by the name that run lines use.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// Why there is none: the extension that the driver lacks by its name, or how its compiler ended. Null where there is.
    pub without: Option<String>,
    /// The threads of the test alone, with all parameters known, beside the instructions that lines come from.
    pub kernels: Vec<CodegenKernel>,
    /// The kernels that ran, parameters, rounds and all, as the driver prints them; by the threads that they play.
    pub ran: Vec<CodegenForm>,
    /// A command that shows `kernels` again.
    pub replay: String,
}

/// Version of [`CodegenEditLine`].
pub const CODEGEN_EDIT_SCHEMA: &str = "vk-litmus/codegen-edit/1";

/// A line of `codegen --explore --edits --format json`: machine code that shows nothing forbidden, with one instruction or bit
/// less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodegenEditLine {
    /// [`CODEGEN_EDIT_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The device.
    pub device: String,
    /// The form of the kernels.
    pub form: String,
    /// The threads whose kernel it is.
    pub kernel: String,
    /// The instruction that was changed, as it was.
    pub code: String,
    /// What was taken away: `barrier`, `vector wait`, `store wait`, `LDS wait`, `scalar wait`, `load bit`, `load dlc`, `store
    /// bit` or `invalidate`.
    pub edit: String,
    /// Whether the explorer notices.
    pub caught: bool,
    /// `reachable` or `hazard`; `survives: ` and why; or `unsupported: ` and what.
    pub fate: String,
}
