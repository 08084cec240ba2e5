//! `codegen`: the machine code that drivers make of tests.

mod baselines;
pub mod beside;
mod campaign;
pub mod engine;
mod explore;
mod orders;
mod reduce;
mod report;
mod table;
pub mod targets;

use std::sync::Arc;

use ::campaign::inputs;
use ::campaign::parallel::{in_order, map};
use codegen::{Form, Sizes, units};
use litmus::Test;
use litmus::convert::for_device;
use runner::Variant;

use crate::arguments::{Codegen, CodegenEmit, CodegenFormat};
use crate::exit::{Failure, Outcome};
use crate::output::complain;
use engine::Question;
use report::Printer;
use targets::Target;

/// The suite that is compiled when nothing else is asked for.
const DEFAULT_SUITE: &str = "quick";

/// A test of the command.
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
    pub made: Result<Question, String>,
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
    kernels: Vec<(Sizes, Vec<Vec<Told>>)>,
}

impl Asked {
    /// The forms of each test on a device.
    pub fn told_for(&self, target: &Target) -> &[Vec<Told>] {
        let sizes = target.sizes(self.lanes);
        self.kernels.iter().find(|(known, _)| *known == sizes).map_or(&[], |(_, told)| told)
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

/// Runs the command.
///
/// # Errors
/// What ended it before anything was compiled.
pub fn codegen(arguments: &Codegen, _quiet: bool) -> Result<Outcome, Failure> {
    let orders_alone = arguments.emit == Some(CodegenEmit::Order) && !arguments.explore;
    if arguments.format == CodegenFormat::Html && !orders_alone {
        return Err(Failure::input_message("--format html is of --emit order"));
    }
    let mut outcome = Outcome::Success;
    let items = load(arguments, &mut outcome)?;
    if items.is_empty() && outcome == Outcome::Success {
        return Err(Failure::input_message("no test to compile"));
    }
    let targets = targets::targets(&arguments.device, arguments.mesa.as_deref())?;
    let looks_close =
        arguments.explore || arguments.baseline.is_some() || arguments.emit == Some(CodegenEmit::Diff);
    let forms = match arguments.form.as_slice() {
        // What is explored is the code of dispatches, and what is compared stays comparable.
        [] if looks_close => Form::RUN.to_vec(),
        [] => Form::ALL.to_vec(),
        named => named.to_vec(),
    };
    let mut asked = Asked {
        items,
        targets,
        forms,
        lanes: arguments.lanes,
        whole: arguments.tests.is_empty(),
        kernels: Vec::new(),
    };
    if arguments.explore || arguments.emit != Some(CodegenEmit::Diff) {
        asked.kernels = kernels(&asked);
    }
    let mut printer = Printer::new(arguments.format);
    let ended = match (&arguments.baseline, arguments.emit) {
        _ if arguments.explore => explore::explore(arguments, &asked, &mut printer),
        (Some(folder), _) => baselines::baselines(arguments, folder, &asked, &mut printer),
        (None, Some(CodegenEmit::Diff)) => table::table(arguments, &asked, &mut printer),
        (None, _) => campaign::campaign(arguments, &asked, &mut printer),
    };
    outcome.note(ended?);
    Ok(outcome)
}

/// The tests that are named. What is no test is told, and the others go on.
fn load(arguments: &Codegen, outcome: &mut Outcome) -> Result<Vec<Item>, Failure> {
    let suite = arguments.suite.as_deref();
    let sources = inputs::collect(&arguments.tests, suite, None, || inputs::of_suite(DEFAULT_SUITE))?;
    let mut items = Vec::new();
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
            Err(rejected) => {
                let (source, rejection) = *rejected;
                let failure = rejection.failure(&source.file);
                outcome.note(Outcome::from(&failure));
                complain(failure.report());
            }
        }
    }
    Ok(items)
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
            .map(|units| Question { test: Arc::clone(&item.test), form: *form, units })
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
