//! `codegen`: the machine code that drivers produce for tests. It checks that every kernel compiles, that
//! required orders survive, which code a relaxation changes, and whether the code allows an outcome that the
//! model forbids.

pub mod baselines;
pub mod beside;
pub mod engine;
pub mod explore;
pub mod kernels;
pub mod lines;
mod orders;
mod reduce;
pub mod relaxations;
mod source;
pub mod targets;

use std::sync::{Arc, OnceLock};

use codegen::{Form, KernelSizes, form_kernels};
use litmus::Test;
use litmus::convert::for_device;
use runner::RunVariant;

use crate::parallel::{in_order, map};
use crate::{Failure, inputs};
use engine::FormKernels;
use targets::CompilerTarget;

/// The suite that is compiled by default.
const DEFAULT_SUITE: &str = "quick";

/// A test whose kernels are compiled.
#[derive(Clone, Debug)]
pub struct CompiledTest {
    /// The id of the test.
    pub id: String,
    /// The name on a command line.
    pub argument: String,
    /// The test, lowered for a device.
    pub test: Arc<Test>,
    /// The variant of the test.
    pub variant: RunVariant,
}

/// The kernels of a test in one form, or the reason why it has none.
#[derive(Clone, Debug)]
pub struct FormResult {
    /// The form.
    pub form: Form,
    /// The kernels, or why there are none.
    pub made: Result<FormKernels, String>,
}

/// The tests, devices and forms of one `codegen` command.
#[derive(Debug)]
pub struct CodegenRequest {
    /// The tests to compile.
    pub items: Vec<CompiledTest>,
    /// The devices to compile for.
    pub targets: Vec<CompilerTarget>,
    /// The forms of each test.
    pub forms: Vec<Form>,
    /// Invocations of a workgroup in tests where each thread has one invocation.
    pub lanes: u32,
    /// True if the tests are a complete suite, so that a baseline entry without a test is stale.
    pub whole: bool,
    /// The kernels by device sizes, which most devices share.
    kernels: OnceLock<Vec<(KernelSizes, Vec<Vec<FormResult>>)>>,
}

impl CodegenRequest {
    /// Creates a request without kernels, which are generated on first use.
    pub fn new(
        items: Vec<CompiledTest>,
        targets: Vec<CompilerTarget>,
        forms: Vec<Form>,
        lanes: u32,
        whole: bool,
    ) -> CodegenRequest {
        CodegenRequest { items, targets, forms, lanes, whole, kernels: OnceLock::new() }
    }

    /// Returns the forms of each test for a device.
    pub fn told_for(&self, target: &CompilerTarget) -> &[Vec<FormResult>] {
        let sizes = target.sizes(self.lanes);
        let kernels = self.kernels.get_or_init(|| generate_kernels(self));
        kernels.iter().find(|(known, _)| *known == sizes).map_or(&[], |(_, told)| told)
    }

    /// Returns a command that compiles one test on one device again.
    pub fn replay(&self, item: &CompiledTest, target: &CompilerTarget) -> String {
        let forms: Vec<&str> = self.forms.iter().map(|form| form.word()).collect();
        format!(
            "vk-litmus codegen '{}' --device '{}' --form {} --lanes {} --emit asm{}",
            item.argument,
            target.name,
            forms.join(","),
            self.lanes,
            target.folder_argument()
        )
    }
}

/// Loads the named tests. Returns a failure for each that is invalid.
///
/// # Errors
/// If the suite or the variant does not exist.
pub fn load(tests: &[String], suite: Option<&str>) -> Result<(Vec<CompiledTest>, Vec<Failure>), Failure> {
    let sources = inputs::collect(tests, suite, None, || inputs::of_suite(DEFAULT_SUITE))?;
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
                test: Arc::new(for_device(&loaded.test).unwrap_or_else(|_| loaded.test.clone())),
                variant,
            }),
            Err(no_test) => rejected.push(no_test.failure),
        }
    }
    Ok((items, rejected))
}

/// Generates the kernels of every test in every form, for the sizes of all devices.
fn generate_kernels(asked: &CodegenRequest) -> Vec<(KernelSizes, Vec<Vec<FormResult>>)> {
    let mut found: Vec<(KernelSizes, Vec<Vec<FormResult>>)> = Vec::new();
    for target in &asked.targets {
        let sizes = target.sizes(asked.lanes);
        if found.iter().any(|(known, _)| *known == sizes) {
            continue;
        }
        let told = map(&asked.items, |item| told_of(item, &asked.forms, &sizes));
        found.push((sizes, told));
    }
    found
}

fn told_of(item: &CompiledTest, forms: &[Form], sizes: &KernelSizes) -> Vec<FormResult> {
    let told = |form: &Form| FormResult {
        form: *form,
        made: form_kernels(&item.test, *form, item.variant.shader, sizes)
            .map(|units| FormKernels { test: Arc::clone(&item.test), form: *form, units })
            .map_err(|error| error.to_string()),
    };
    forms.iter().map(told).collect()
}

/// Runs `work` for every device in parallel, and delivers the results in the order of the devices.
fn by_device<R: Send>(
    asked: &CodegenRequest,
    work: impl Fn(&CompilerTarget) -> R + Sync,
    mut deliver: impl FnMut(&CompilerTarget, R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut targets = asked.targets.iter();
    in_order(&asked.targets, work, |result| match targets.next() {
        Some(target) => deliver(target, result),
        None => Ok(()),
    })
}
