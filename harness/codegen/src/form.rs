//! The kernels of a test, in every form that compilers may treat differently.
//!
//! Compilers use facts such as which memory a shader does not write and how it uses loaded values. So a role
//! is compiled together with the others (merged) and separately (split); with references that may alias, and
//! with references declared not to, as in most shaders; with one result per value read, and with one for all
//! of them (expression). It is also compiled as a vertex or fragment shader, which passes results on to the
//! pipeline instead of memory, and as a mesh or task shader, whose workgroups a compiler may treat
//! differently from compute.

use std::str::FromStr;

use litmus::{Test, ThreadId, closed_enum};
use shaders::variant::{CarrierStage, ReferenceAliasing};
use shaders::{
    CompileError, CompiledKernel, FixedDispatch, KernelConfig, Parameters, Pipelines, Program,
    ResultPlacement, Variant, compile_fixed_program,
};

closed_enum! {
    /// A form of a test's kernels.
    pub enum Form {
        /// One kernel for all threads that run concurrently.
        Merged = "merged",
        /// One kernel for each workgroup's threads; its references may alias.
        Split = "split",
        /// As split, with references declared not to alias: the default in shaders of one role.
        Restrict = "split.restrict",
        /// As [`Form::Split`], with memory that a kernel does not write declared `NonWritable`.
        ReadOnly = "split.readonly",
        /// As [`Form::Restrict`]; one expression uses all values that a thread read.
        Expression = "expression.restrict",
        /// As [`Form::Split`], in vertex shaders; the position of a point is the expression.
        Vertex = "vertex",
        /// As the vertex form, with references declared not to alias.
        VertexRestrict = "vertex.restrict",
        /// As [`Form::Split`], in fragment shaders; the colour is the expression.
        Fragment = "fragment",
        /// As the fragment form, with references declared not to alias.
        FragmentRestrict = "fragment.restrict",
        /// As [`Form::Merged`], in mesh shaders.
        Mesh = "mesh",
        /// As [`Form::Merged`], in task shaders.
        Task = "task",
    }
}

impl Form {
    /// The forms of the kernels that `run` dispatches.
    pub const DISPATCHED: [Form; 3] = [Form::Merged, Form::Split, Form::Restrict];

    /// Returns the forms that a campaign uses by default, without mesh and task shaders, which not every chip
    /// has, and without [`Form::ReadOnly`], which declares less than the forms with `Restrict`.
    pub fn default_forms() -> Vec<Form> {
        let is_on_request = |form: &Form| matches!(form, Form::ReadOnly | Form::Mesh | Form::Task);
        Form::ALL.into_iter().filter(|form| !is_on_request(form)).collect()
    }

    /// Returns true if concurrent threads share a kernel.
    pub fn is_merged(self) -> bool {
        matches!(self, Form::Merged | Form::Mesh | Form::Task)
    }

    fn pipelines(self) -> Pipelines {
        if self.is_merged() { Pipelines::Merged } else { Pipelines::Split }
    }

    /// Returns the compile variant of this form: `variant` with the form's references and stage.
    pub fn compile_variant(self, variant: Variant) -> Variant {
        let stage = match self {
            Form::Merged | Form::Split | Form::Restrict | Form::ReadOnly | Form::Expression => variant.stage,
            Form::Vertex | Form::VertexRestrict => CarrierStage::Vertex,
            Form::Fragment | Form::FragmentRestrict => CarrierStage::Fragment,
            Form::Mesh => CarrierStage::Mesh,
            Form::Task => CarrierStage::Task,
        };
        let references = match self {
            Form::Merged | Form::Mesh | Form::Task => variant.reference_aliasing,
            Form::Split | Form::ReadOnly | Form::Vertex | Form::Fragment => variant.reference_aliasing,
            Form::Restrict | Form::Expression | Form::VertexRestrict | Form::FragmentRestrict => {
                ReferenceAliasing::Restrict
            }
        };
        Variant {
            stage,
            reference_aliasing: references,
            readonly: variant.readonly || self == Form::ReadOnly,
            ..variant
        }
    }

    /// Returns the placement of the threads' results.
    pub fn result_placement(self) -> ResultPlacement {
        match self {
            Form::Merged | Form::Mesh | Form::Task | Form::Split | Form::Restrict | Form::ReadOnly => {
                ResultPlacement::Words
            }
            Form::Expression => ResultPlacement::Expression,
            Form::Vertex | Form::VertexRestrict | Form::Fragment | Form::FragmentRestrict => {
                ResultPlacement::Output
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown form `{0}`; expected one of {words}", words = Form::ALL.map(Form::name).join(", "))]
pub struct UnknownForm(pub String);

impl FromStr for Form {
    type Err = UnknownForm;

    fn from_str(text: &str) -> Result<Form, UnknownForm> {
        Form::from_name(text).ok_or_else(|| UnknownForm(text.to_owned()))
    }
}

closed_enum! {
    /// The memory accesses of all threads of a kernel, from whose absence compilers infer.
    pub enum MemoryRole {
        ReadWrite = "both",
        /// They write but never read.
        Producer = "producer",
        /// They read but never write.
        Consumer = "consumer",
        /// They do not access memory.
        NoAccess = "neither",
    }
}

impl MemoryRole {
    pub fn from_threads(test: &Test, threads: &[ThreadId]) -> MemoryRole {
        let instructions = threads.iter().flat_map(|thread| &test.thread(*thread).instructions);
        let accesses = instructions.filter_map(|instruction| instruction.kind.access());
        MemoryRole::from_accesses(accesses.map(|access| (access.is_read(), access.is_write())))
    }

    /// Returns the role of accesses, each with whether it reads and writes.
    pub fn from_accesses(accesses: impl Iterator<Item = (bool, bool)>) -> MemoryRole {
        let (reads, writes) =
            accesses.fold((false, false), |(reads, writes), (read, write)| (reads | read, writes | write));
        match (reads, writes) {
            (true, true) => MemoryRole::ReadWrite,
            (false, true) => MemoryRole::Producer,
            (true, false) => MemoryRole::Consumer,
            (false, false) => MemoryRole::NoAccess,
        }
    }
}

#[derive(Clone, Debug)]
pub struct FormKernel {
    pub form: Form,
    /// Its name within the form: the threads that it contains, such as `P0` or `P0,P1`.
    pub name: String,
    pub threads: Vec<ThreadId>,
    pub role: MemoryRole,
    /// The phase, from 0; later phases are dispatched after it has ended.
    pub phase: usize,
    /// The kernel; its threads are numbered by their index in `threads`.
    pub kernel: CompiledKernel,
    /// The known values of its parameters.
    pub parameters: Parameters,
    /// True if its split barriers use Intel's extension.
    pub intel_split_barriers: bool,
}

/// Device limits that determine the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelSizes {
    pub subgroup_size: u32,
    /// The maximum number of invocations of a workgroup.
    pub max_workgroup_invocations: u32,
    /// True if the device has `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
    /// Slots of a workgroup if every role has its own workgroup.
    ///
    /// With 1, addresses are uniform in the subgroup, as in a shader whose work one invocation does.
    /// Compilers may then use scalar paths to memory.
    pub lanes: u32,
    /// True to use Intel's split barrier extension, which the device's compiler accepts even if the device
    /// lacks the feature.
    pub intel_split_barriers: bool,
}

/// Returns the program of a test in one form, with parameters [`Parameters::SINGLE`].
///
/// # Errors
///
/// [`CompileError`]: the same rules as for running the test.
pub fn form_program(
    test: &Test,
    form: Form,
    variant: Variant,
    sizes: &KernelSizes,
) -> Result<Program, CompileError> {
    if variant.stage != CarrierStage::Compute {
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
        variant: form.compile_variant(variant),
        ..KernelConfig::MINIMAL
    };
    let fixed = FixedDispatch { result_placement: form.result_placement(), ..FixedDispatch::SINGLE };
    compile_fixed_program(test, &config, form.pipelines(), &fixed)
}

/// Returns the kernels of a test in one form; `variant` is the compile variant.
///
/// # Errors
///
/// [`CompileError`]: the same rules as for running the test.
pub fn form_kernels(
    test: &Test,
    form: Form,
    variant: Variant,
    sizes: &KernelSizes,
) -> Result<Vec<FormKernel>, CompileError> {
    let mut kernels =
        kernels_of_program(test, form, form_program(test, form, variant, sizes)?, Parameters::SINGLE);
    if sizes.intel_split_barriers {
        for kernel in &mut kernels {
            kernel.intel_split_barriers = kernel.kernel.name_split_barriers_as_intel();
        }
    }
    Ok(kernels)
}

fn kernels_of_program(test: &Test, form: Form, program: Program, parameters: Parameters) -> Vec<FormKernel> {
    let mut kernels = Vec::new();
    for (phase, phase_kernels) in program.phases.into_iter().enumerate() {
        for part in phase_kernels.kernels {
            let names: Vec<String> =
                part.threads.iter().map(|thread| format!("P{}", test.thread(*thread).number)).collect();
            kernels.push(FormKernel {
                form,
                name: names.join(","),
                role: MemoryRole::from_threads(test, &part.threads),
                phase,
                threads: part.threads,
                kernel: part.kernel,
                parameters,
                intel_split_barriers: false,
            });
        }
    }
    kernels
}

/// The iterations of a loop of a test. One iteration shows its code and leaves no loop.
const LOOP_BOUND: u32 = 1;
