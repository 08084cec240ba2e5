//! `codegen`: the machine code that drivers produce for tests and shaders. It checks that every kernel compiles, that
//! required orders survive, which code a relaxation changes, and whether the code allows an outcome that the
//! model forbids.

pub mod baselines;
pub mod code_lines;
pub mod engine;
pub mod explore;
pub mod kernels;
mod line_source;
mod observed;
mod orders;
mod reduce;
pub mod relaxations;
pub mod report_code;
pub mod shader_code;
mod shader_steps;
pub mod targets;

use std::sync::{Arc, OnceLock};

use codegen::{Form, KernelSizes, form_kernels};
use litmus::Test;
use litmus::convert::to_device_program;
use runner::RunVariant;

use crate::parallel::{parallel_map, process_in_order};
use crate::{Failure, inputs};
use engine::FormKernels;
use targets::CompilerTarget;

/// The suite that is compiled by default.
const DEFAULT_SUITE: &str = "quick";

/// A test whose kernels are compiled.
#[derive(Clone, Debug)]
pub struct CompiledTest {
    pub id: String,
    /// The name on a command line.
    pub argument: String,
    /// The test, lowered for a device.
    pub test: Arc<Test>,
    pub variant: RunVariant,
}

/// The kernels of a test in one form, or the reason why it has none.
#[derive(Clone, Debug)]
pub struct FormResult {
    pub form: Form,
    /// The kernels, or why there are none.
    pub kernels: Result<FormKernels, String>,
}

/// The tests, devices and forms of one `codegen` command.
#[derive(Debug)]
pub struct CodegenRequest {
    pub tests: Vec<CompiledTest>,
    /// The devices to compile for.
    pub targets: Vec<CompilerTarget>,
    /// The forms of each test.
    pub forms: Vec<Form>,
    /// Invocations of a workgroup in tests where each thread has one invocation.
    pub lanes: u32,
    /// True if the tests are a complete suite, so that a baseline entry without a test is stale.
    pub is_whole_suite: bool,
    /// The kernels by device sizes, which most devices share.
    kernels: OnceLock<Vec<(KernelSizes, Vec<Vec<FormResult>>)>>,
}

impl CodegenRequest {
    /// Creates a request without kernels, which are generated on first use.
    pub fn new(
        tests: Vec<CompiledTest>,
        targets: Vec<CompilerTarget>,
        forms: Vec<Form>,
        lanes: u32,
        is_whole_suite: bool,
    ) -> CodegenRequest {
        CodegenRequest { tests, targets, forms, lanes, is_whole_suite, kernels: OnceLock::new() }
    }

    /// Returns the forms of each test for a device.
    pub fn forms_for(&self, target: &CompilerTarget) -> &[Vec<FormResult>] {
        let sizes = target.kernel_sizes(self.lanes);
        let kernels = self.kernels.get_or_init(|| generate_kernels(self));
        kernels.iter().find(|(known, _)| *known == sizes).map_or(&[], |(_, forms)| forms)
    }

    /// Returns a command that compiles one test on one device again.
    pub fn replay_command(&self, item: &CompiledTest, target: &CompilerTarget) -> String {
        let forms: Vec<&str> = self.forms.iter().map(|form| form.name()).collect();
        format!(
            "vk-litmus codegen '{}' --device '{}' --form {} --lanes {} --emit asm{}",
            item.argument,
            target.name,
            forms.join(","),
            self.lanes,
            target.mesa_argument()
        )
    }
}

/// Loads the named tests. Returns a failure for each that is invalid.
///
/// # Errors
/// If the suite or the variant does not exist.
pub fn load_tests(
    tests: &[String],
    suite: Option<&str>,
) -> Result<(Vec<CompiledTest>, Vec<Failure>), Failure> {
    let sources = inputs::collect(tests, suite, None, || inputs::suite_tests(DEFAULT_SUITE))?;
    let (mut items, mut rejected) = (Vec::new(), Vec::new());
    for source in sources {
        let variant: RunVariant = source
            .variant
            .parse()
            .map_err(|error| Failure::input_message(format!("{}: {error}", source.argument)))?;
        match source.load() {
            Ok(loaded) => items.push(CompiledTest {
                id: loaded.source.id.clone(),
                argument: loaded.source.argument.clone(),
                // An HSA test that cannot be lowered is refused later, in its original form.
                test: Arc::new(to_device_program(&loaded.test).unwrap_or_else(|_| loaded.test.clone())),
                variant,
            }),
            Err(rejection) => rejected.push(rejection.failure),
        }
    }
    Ok((items, rejected))
}

/// Generates the kernels of every test in every form, for the sizes of all devices.
fn generate_kernels(request: &CodegenRequest) -> Vec<(KernelSizes, Vec<Vec<FormResult>>)> {
    let mut by_sizes: Vec<(KernelSizes, Vec<Vec<FormResult>>)> = Vec::new();
    for target in &request.targets {
        let sizes = target.kernel_sizes(request.lanes);
        if by_sizes.iter().any(|(known, _)| *known == sizes) {
            continue;
        }
        let forms = parallel_map(&request.tests, |item| generate_forms(item, &request.forms, &sizes));
        by_sizes.push((sizes, forms));
    }
    by_sizes
}

fn generate_forms(item: &CompiledTest, forms: &[Form], sizes: &KernelSizes) -> Vec<FormResult> {
    let generate = |form: &Form| FormResult {
        form: *form,
        kernels: form_kernels(&item.test, *form, item.variant.shader, sizes)
            .map(|units| FormKernels { test: Arc::clone(&item.test), form: *form, kernels: units })
            .map_err(|error| error.to_string()),
    };
    forms.iter().map(generate).collect()
}

/// Runs `work` for every device in parallel, and delivers the results in the order of the devices.
fn for_each_device<R: Send>(
    request: &CodegenRequest,
    work: impl Fn(&CompilerTarget) -> R + Sync,
    mut deliver: impl FnMut(&CompilerTarget, R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut targets = request.targets.iter();
    process_in_order(&request.targets, work, |result| match targets.next() {
        Some(target) => deliver(target, result),
        None => Ok(()),
    })
}
