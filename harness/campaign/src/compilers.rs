//! The machine code that drivers make of tests: whether every kernel compiles, what became of each order, what relaxing a test
//! changes, and whether the code can show what the model forbids.

pub mod baselines;
pub mod beside;
pub mod engine;
pub mod explore;
pub mod kernels;
pub mod lines;
mod orders;
mod reduce;
pub mod relaxations;
pub mod targets;

use std::sync::{Arc, OnceLock};

use codegen::{Form, Sizes, units};
use litmus::Test;
use litmus::convert::for_device;
use runner::Variant;

use crate::parallel::{in_order, map};
use crate::{Failure, inputs};
use engine::FormKernels;
use targets::Target;

/// The suite that is compiled when nothing else is asked for.
const DEFAULT_SUITE: &str = "quick";

/// A test whose kernels are compiled.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// How a command line names it.
    pub argument: String,
    /// The test that kernels play.
    pub test: Arc<Test>,
    /// How it is told.
    pub variant: Variant,
}

/// A form of a test, with its kernels or why there are none.
#[derive(Clone, Debug)]
pub struct Told {
    /// The form.
    pub form: Form,
    /// Its kernels.
    pub made: Result<FormKernels, String>,
}

/// What is asked of which devices.
#[derive(Debug)]
pub struct Asked {
    /// The tests.
    pub items: Vec<Item>,
    /// The devices.
    pub targets: Vec<Target>,
    /// The forms.
    pub forms: Vec<Form>,
    /// Invocations of a workgroup where each thread has one of its own.
    pub lanes: u32,
    /// Whether the tests are a whole suite, so that what is not among them is gone.
    pub whole: bool,
    /// The kernels by the sizes of devices: few devices differ in them.
    kernels: OnceLock<Vec<(Sizes, Vec<Vec<Told>>)>>,
}

impl Asked {
    /// A question about tests and devices.
    pub fn new(items: Vec<Item>, targets: Vec<Target>, forms: Vec<Form>, lanes: u32, whole: bool) -> Asked {
        Asked { items, targets, forms, lanes, whole, kernels: OnceLock::new() }
    }

    /// The forms of each test on a device.
    pub fn told_for(&self, target: &Target) -> &[Vec<Told>] {
        let sizes = target.sizes(self.lanes);
        let kernels = self.kernels.get_or_init(|| kernels(self));
        kernels.iter().find(|(known, _)| *known == sizes).map_or(&[], |(_, told)| told)
    }

    /// A command that compiles one test on one device again.
    pub fn replay(&self, item: &Item, target: &Target) -> String {
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

/// The tests that are named, and what is wrong with those that are none.
///
/// # Errors
/// When there is no such suite or variant.
pub fn load(tests: &[String], suite: Option<&str>) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
    let sources = inputs::collect(tests, suite, None, || inputs::of_suite(DEFAULT_SUITE))?;
    let (mut items, mut rejected) = (Vec::new(), Vec::new());
    for source in sources {
        let variant: Variant = source
            .variant
            .parse()
            .map_err(|error| Failure::input_message(format!("{}: {error}", source.argument)))?;
        match source.load() {
            Ok(loaded) => items.push(Item {
                id: loaded.source.id.clone(),
                argument: loaded.source.argument.clone(),
                // An HSA test that cannot be lowered is refused as it is.
                test: Arc::new(for_device(&loaded.test).unwrap_or_else(|_| loaded.test.clone())),
                variant,
            }),
            Err(no_test) => rejected.push(no_test.failure),
        }
    }
    Ok((items, rejected))
}

/// The kernels of every test in every form, for the sizes of all devices.
fn kernels(asked: &Asked) -> Vec<(Sizes, Vec<Vec<Told>>)> {
    let mut found: Vec<(Sizes, Vec<Vec<Told>>)> = Vec::new();
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

fn told_of(item: &Item, forms: &[Form], sizes: &Sizes) -> Vec<Told> {
    let told = |form: &Form| Told {
        form: *form,
        made: units(&item.test, *form, item.variant.told, sizes)
            .map(|units| FormKernels { test: Arc::clone(&item.test), form: *form, units })
            .map_err(|error| error.to_string()),
    };
    forms.iter().map(told).collect()
}

/// Does `work` for every device, as many at once as there are processors, and hands the results over in their order.
fn by_device<R: Send>(
    asked: &Asked,
    work: impl Fn(&Target) -> R + Sync,
    mut deliver: impl FnMut(&Target, R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut targets = asked.targets.iter();
    in_order(&asked.targets, work, |result| match targets.next() {
        Some(target) => deliver(target, result),
        None => Ok(()),
    })
}
