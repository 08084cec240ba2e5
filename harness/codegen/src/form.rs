//! The kernels of a test, in every form in which a compiler may meet it.
//!
//! Compilers infer from what a shader does not write, and from what it does with what it reads. So the same role is compiled in
//! company of the others (merged) and alone (split), with references that may alias and with references declared, as most shaders
//! leave them, not to; with a result in memory for each value that it read, or with one for all of them (expression); as a
//! vertex or fragment shader, which hands its results on to the pipeline and writes no memory for them; and as a mesh or task shader, whose
//! workgroups a compiler may run in another way than those of compute.

use std::fmt;
use std::str::FromStr;

use litmus::{MemoryAccess, Test, ThreadId};
use shaders::variant::{References, Stage};
use shaders::{
    CompileError, Fixed, Kernel, KernelConfig, Leaving, Parameters, Pipelines, Program, Variant,
    fixed_program,
};

/// A form of a test's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// All threads that run at the same time in one kernel.
    Merged,
    /// Each workgroup's threads in a kernel of their own, whose references may show each other's memory.
    Split,
    /// The same with references that are declared not to: what a shader of one role says unless its author decorates it.
    Restrict,
    /// As [`Form::Restrict`]; all that a thread read is used in one expression.
    Expression,
    /// As [`Form::Split`], in vertex shaders: the position of a point is the expression.
    Vertex,
    /// The same with references that are declared not to alias.
    VertexRestrict,
    /// As [`Form::Split`], in fragment shaders: the colour is the expression.
    Fragment,
    /// The same with references that are declared not to alias.
    FragmentRestrict,
    /// As [`Form::Merged`], in mesh shaders.
    Mesh,
    /// As [`Form::Merged`], in task shaders.
    Task,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 10] = [
        Form::Merged,
        Form::Split,
        Form::Restrict,
        Form::Expression,
        Form::Vertex,
        Form::VertexRestrict,
        Form::Fragment,
        Form::FragmentRestrict,
        Form::Mesh,
        Form::Task,
    ];
    /// Those of the kernels that `run` dispatches.
    pub const RUN: [Form; 3] = [Form::Merged, Form::Split, Form::Restrict];

    /// Those that a campaign asks about where none is named: not every chip of a vendor has mesh and task shaders.
    pub fn usual() -> Vec<Form> {
        Form::ALL.into_iter().filter(|form| !matches!(form, Form::Mesh | Form::Task)).collect()
    }

    /// Its word on the command line and in reports; the variant of `run` that plays these kernels, where it is one of [`Form::RUN`]
    /// but the first.
    pub fn word(self) -> &'static str {
        match self {
            Form::Merged => "merged",
            Form::Split => "split",
            Form::Restrict => "split.restrict",
            Form::Expression => "expression.restrict",
            Form::Vertex => "vertex",
            Form::VertexRestrict => "vertex.restrict",
            Form::Fragment => "fragment",
            Form::FragmentRestrict => "fragment.restrict",
            Form::Mesh => "mesh",
            Form::Task => "task",
        }
    }

    /// Returns true if threads that run at the same time share a kernel.
    pub fn is_merged(self) -> bool {
        matches!(self, Form::Merged | Form::Mesh | Form::Task)
    }

    fn pipelines(self) -> Pipelines {
        if self.is_merged() { Pipelines::Merged } else { Pipelines::Split }
    }

    /// How its references are told, and in which stage, besides what is told anyway.
    pub fn told(self, told: Variant) -> Variant {
        let stage = match self {
            Form::Merged | Form::Split | Form::Restrict | Form::Expression => told.stage,
            Form::Vertex | Form::VertexRestrict => Stage::Vertex,
            Form::Fragment | Form::FragmentRestrict => Stage::Fragment,
            Form::Mesh => Stage::Mesh,
            Form::Task => Stage::Task,
        };
        let references = match self {
            Form::Merged | Form::Mesh | Form::Task => told.references,
            Form::Split | Form::Vertex | Form::Fragment => told.references,
            Form::Restrict | Form::Expression | Form::VertexRestrict | Form::FragmentRestrict => {
                References::Restrict
            }
        };
        Variant { stage, references, ..told }
    }

    /// How the threads leave their results.
    pub fn results(self) -> Leaving {
        match self {
            Form::Merged | Form::Mesh | Form::Task | Form::Split | Form::Restrict => Leaving::Words,
            Form::Expression => Leaving::Expression,
            Form::Vertex | Form::VertexRestrict | Form::Fragment | Form::FragmentRestrict => Leaving::Output,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that no form has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no form `{0}`: there are {words}", words = Form::ALL.map(Form::word).join(", "))]
pub struct UnknownForm(pub String);

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(text: &str) -> Result<Form, UnknownForm> {
        Form::ALL.into_iter().find(|form| form.word() == text).ok_or_else(|| UnknownForm(text.to_owned()))
    }
}

/// What the threads of a kernel do to memory, all together: from what a shader never does, compilers infer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// They read and write.
    Both,
    /// They write and never read.
    Producer,
    /// They read and never write.
    Consumer,
    /// They do neither.
    Neither,
}

impl Role {
    /// What the threads do.
    pub fn of(test: &Test, threads: &[ThreadId]) -> Role {
        let instructions = || threads.iter().flat_map(|thread| &test.thread(*thread).instructions);
        let any = |meant: fn(&MemoryAccess) -> bool| {
            instructions().any(|instruction| instruction.kind.access().is_some_and(meant))
        };
        let (reads, writes) = (any(MemoryAccess::reads), any(MemoryAccess::writes));
        match (reads, writes) {
            (true, true) => Role::Both,
            (false, true) => Role::Producer,
            (true, false) => Role::Consumer,
            (false, false) => Role::Neither,
        }
    }

    /// Its word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Role::Both => "both",
            Role::Producer => "producer",
            Role::Consumer => "consumer",
            Role::Neither => "neither",
        }
    }
}

/// A kernel of a test.
#[derive(Clone, Debug)]
pub struct FormKernel {
    /// Its form.
    pub form: Form,
    /// Which kernel of the form it is: the threads that it plays, such as `P0` or `P0,P1`.
    pub name: String,
    /// Those threads.
    pub threads: Vec<ThreadId>,
    /// What they do to memory.
    pub role: Role,
    /// Number of the phase, from 0: later ones are dispatched after it has ended.
    pub phase: usize,
    /// The kernel; its threads are numbered by their place in `threads`.
    pub kernel: Kernel,
    /// What it knows of its parameters.
    pub parameters: Parameters,
    /// True if its split barriers are told in Intel's form.
    pub intel_split_barriers: bool,
}

/// How kernels for codegen are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Subgroup size of the device.
    pub subgroup_size: u32,
    /// Invocations of a workgroup at most.
    pub max_workgroup_invocations: u32,
    /// True if the device has `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
    /// Slots of a workgroup where every role has a workgroup of its own. With 1, addresses are the same for the whole
    /// subgroup, as in a shader whose work is done by one invocation: compilers then may take scalar paths to memory.
    pub lanes: u32,
    /// Tell split barriers in Intel's form, which the device's compiler takes though the device lacks the feature.
    pub intel_split_barriers: bool,
}

/// The kernels of a test in one form, as a program whose parameters are [`Parameters::SINGLE`].
///
/// # Errors
/// [`CompileError`]: the same rules as for running the test.
pub fn program(test: &Test, form: Form, told: Variant, sizes: &Sizes) -> Result<Program, CompileError> {
    if told.stage != Stage::Compute {
        return Err(CompileError::NotPlaceable {
            rule: "machine code of a variant in a graphics stage not available: --form vertex, fragment, mesh or task"
                .to_owned(),
        });
    }
    let config = KernelConfig {
        subgroup_size: sizes.subgroup_size,
        subgroup_sizes: (sizes.subgroup_size, sizes.subgroup_size),
        lanes: sizes.lanes,
        max_workgroup_invocations: sizes.max_workgroup_invocations,
        max_workgroup_size: [sizes.max_workgroup_invocations; 3],
        device_scope: sizes.device_scope,
        loop_bound: LOOP_BOUND,
        variant: form.told(told),
        ..KernelConfig::PLAIN
    };
    let fixed = Fixed { results: form.results(), ..Fixed::SINGLE };
    fixed_program(test, &config, form.pipelines(), &fixed)
}

/// The kernels of a test in one form; `told` says how references, pointers and the like are told to compilers.
///
/// # Errors
/// [`CompileError`]: the same rules as for running the test.
pub fn units(test: &Test, form: Form, told: Variant, sizes: &Sizes) -> Result<Vec<FormKernel>, CompileError> {
    let mut units = units_of(test, form, program(test, form, told, sizes)?, Parameters::SINGLE);
    if sizes.intel_split_barriers {
        for unit in &mut units {
            unit.intel_split_barriers = unit.kernel.name_split_barriers_as_intel();
        }
    }
    Ok(units)
}

fn units_of(test: &Test, form: Form, program: Program, parameters: Parameters) -> Vec<FormKernel> {
    let mut units = Vec::new();
    for (phase, parts) in program.phases.into_iter().enumerate() {
        for part in parts.parts {
            let names: Vec<String> =
                part.threads.iter().map(|thread| format!("P{}", test.thread(*thread).number)).collect();
            units.push(FormKernel {
                form,
                name: names.join(","),
                role: Role::of(test, &part.threads),
                phase,
                threads: part.threads,
                kernel: part.kernel,
                parameters,
                intel_split_barriers: false,
            });
        }
    }
    units
}

/// Turns of a loop of a test: one is enough to show its code, and leaves no loop.
const LOOP_BOUND: u32 = 1;
