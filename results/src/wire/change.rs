//! Changes of shaders that fix findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ShaderChange {
    /// Code next to a statement.
    Insert {
        /// The code.
        code: String,
        /// The side of the anchor.
        side: InsertionSide,
        /// The code next to which it is inserted.
        anchor: InsertionAnchor,
    },
    /// A qualifier in the declaration of a variable or block.
    Declare {
        /// The name.
        name: String,
        /// The qualifier.
        qualifier: ChangeQualifier,
    },
    /// An access of a coherent variable that is not coherent itself becomes so.
    MakeAccessCoherent {
        /// The name of the variable.
        name: String,
    },
    /// Memory semantics of an atomic or a barrier.
    StrengthenOrder {
        /// `atomic` or `barrier`.
        operation: InsertionAnchor,
        /// True if the operation acquires.
        acquire: bool,
        /// True if the operation releases.
        release: bool,
        /// The memory.
        class: ChangeMemory,
    },
    /// The scope of an atomic or a barrier becomes the queue family.
    WidenScope {
        /// `atomic` or `barrier`.
        operation: InsertionAnchor,
    },
    /// An atomic function instead of plain accesses.
    UseAtomic {
        /// The function.
        function: String,
        /// The replaced accesses.
        replaces: ReplacedAccesses,
        /// True if the element is declared atomic.
        declares: bool,
        /// The extension that the function needs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extension: Option<String>,
    },
    /// Atomic accesses at the positions of the finding, which remain unordered.
    MakeAccessesAtomic,
    /// An atomic access, which remains unordered.
    MakeAccessAtomic,
    /// An initial value of a workgroup variable.
    Initialize {
        /// The name.
        name: String,
    },
    /// Another call instead of a barrier.
    ReplaceBarrier {
        /// The call.
        new: String,
        /// The replaced call.
        old: String,
    },
    /// An assignment instead of an increment, whose store has no qualifier.
    ExpandIncrement {
        /// The assignment.
        new: String,
        /// The replaced increment.
        old: String,
    },
    /// A second dispatch for the code after a barrier.
    SecondDispatch,
    /// An `if` becomes several, between which every invocation reaches the barriers.
    SplitIf,
    /// The barriers of both branches of an `if` move out of it.
    JoinBarriers,
    /// A jump moves after the last barrier.
    MoveJump {
        /// The jump.
        jump: String,
        /// True if a condition guards the code before it.
        has_guards: bool,
    },
    /// A strided loop has the same number of iterations in every invocation.
    MakeLoopUniform,
    /// One invocation makes a store.
    RestrictStore {
        /// The condition.
        condition: String,
    },
    /// The other invocations store zero.
    StoreZeroElsewhere {
        /// The element.
        element: String,
    },
    /// All invocations clear a variable and wait.
    ClearFirst {
        /// The name.
        name: String,
        /// The barrier.
        barrier: String,
    },
    /// Each round of a reduction has its lanes, and a barrier follows it.
    SeparateRounds,
}

/// The changes that remove a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShaderFix {
    /// The changes, all of them needed.
    pub parts: Vec<ChangeRecord>,
}

/// A change of a shader with its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeRecord {
    /// The source file; null if unknown.
    pub file: Option<String>,
    /// Line, from 1; null if the module has no line information.
    pub line: Option<u32>,
    /// The change.
    #[serde(flatten)]
    pub change: ShaderChange,
    /// The edits of the file that make this change and those that it needs; empty if no edits are known.
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

/// The side of an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InsertionSide {
    /// Before it.
    Before,
    /// After it.
    After,
    /// Before and after it.
    Around,
}

/// The code to which a change applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InsertionAnchor {
    /// The statement of the line.
    Line,
    /// The statement that the line controls.
    ControlledStatement,
    /// The loop in the line.
    Loop,
    /// The end of the body of that loop.
    LoopBody,
    /// An atomic.
    Atomic,
    /// A barrier.
    Barrier,
    /// A read.
    Read,
    /// A write.
    Write,
}

/// A qualifier of a variable or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeQualifier {
    /// `coherent` of GLSL.
    Coherent,
    /// `globallycoherent` of HLSL.
    GloballyCoherent,
    /// `@coherent`, which naga adds to WGSL.
    NagaCoherent,
    /// `globallycoherent`, which the source has and glslang lost.
    OtherCompiler,
}

/// The memory of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeMemory {
    /// Buffer memory.
    Buffer,
    /// Workgroup memory.
    Shared,
    /// Images.
    Image,
    /// Outputs.
    Output,
}

/// The accesses that an atomic function replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacedAccesses {
    /// A load and a store.
    LoadAndStore,
    /// A comparison and a store.
    ComparisonAndStore,
    /// A store that several invocations may make.
    Store,
}

impl InsertionSide {
    /// Returns true for each side, before and after.
    pub fn to_flags(self) -> (bool, bool) {
        match self {
            InsertionSide::Before => (true, false),
            InsertionSide::After => (false, true),
            InsertionSide::Around => (true, true),
        }
    }
}

impl InsertionAnchor {
    /// Returns true if the anchor starts and ends on the line that names it, unless its statement is longer.
    pub fn is_on_line(self) -> bool {
        match self {
            InsertionAnchor::Line
            | InsertionAnchor::Atomic
            | InsertionAnchor::Barrier
            | InsertionAnchor::Read
            | InsertionAnchor::Write => true,
            InsertionAnchor::ControlledStatement | InsertionAnchor::Loop | InsertionAnchor::LoopBody => false,
        }
    }
}
