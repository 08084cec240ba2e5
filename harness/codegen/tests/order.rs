//! The tables of order requirements, on machine code of drivers of every vendor for `mp/MP+rel-acq`.
//!
//! Each order is checked as it is, and with each ordering line removed.
//! `tests/texts/VENDOR-CHIP/FORM.THREAD.txt` has the last NIR and the machine code, as `codegen --emit ir`
//! prints them with Mesa 26.2.6.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use codegen::machine::{DisassemblerDialect, LineKind};
use codegen::order::{OrderFinding, OrderKept, check_nir, check_order, required_orders};
use codegen::{Disassembly, Form, FormKernel, KernelSizes, align, form_kernels};
use litmus::Test;

/// Separates NIR and machine code.
const CODE: &str = "=== machine code\n";

/// A text with its origin.
struct Given {
    name: String,
    dialect: &'static DisassemblerDialect,
    target: &'static str,
    unit: FormKernel,
    nir: String,
    code: String,
}

fn test() -> Test {
    let found = litmus::corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").unwrap();
    litmus::parse(found.text, &found.id).unwrap()
}

fn unit(test: &Test, form: Form, thread: &str) -> FormKernel {
    let sizes = KernelSizes {
        subgroup_size: 64,
        max_workgroup_invocations: 1024,
        device_scope: true,
        lanes: 64,
        intel_split_barriers: false,
    };
    let all = form_kernels(test, form, shaders::Variant::default(), &sizes).unwrap();
    all.into_iter().find(|unit| unit.name == thread).unwrap()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn texts_of(test: &Test) -> Vec<Given> {
    let mut all = Vec::new();
    for folder in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts")) {
        let device = folder.file_name().unwrap().to_str().unwrap().replace('-', ":");
        let (vendor, chip) = vendor::of_selector(&device).unwrap();
        for path in files(&folder) {
            let file = path.file_stem().unwrap().to_str().unwrap();
            let (form, thread) = file.rsplit_once('.').unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let (nir, code) = text.split_once(CODE).unwrap();
            all.push(Given {
                name: format!("{device} {form} {thread}"),
                dialect: vendor.dialect,
                target: vendor.find_family(chip).unwrap().target,
                unit: unit(test, form.parse().unwrap(), thread),
                nir: nir.to_owned(),
                code: code.to_owned(),
            });
        }
    }
    all
}

/// Returns the check of the only order of a kernel of the test.
fn found(test: &Test, given: &Given, machine: &Disassembly) -> OrderFinding {
    let [asked] = required_orders(test, &given.unit).try_into().unwrap();
    check_order(&asked, machine, &align(test, &given.unit, machine), given.target)
}

#[test]
fn orders_of_every_vendor() {
    let test = test();
    let mut text = String::new();
    for given in texts_of(&test) {
        let machine = Disassembly::read(&given.code, given.dialect).unwrap();
        let OrderFinding { verdict, why, .. } = found(&test, &given, &machine);
        writeln!(text, "{}: {verdict:?}: {why}", given.name).unwrap();
        let [asked] = required_orders(&test, &given.unit).try_into().unwrap();
        if let Some(OrderFinding { verdict, why, .. }) = check_nir(&asked, &given.nir, 2) {
            writeln!(text, "    NIR: {verdict:?}: {why}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// Removing a required line loses the order; removing any other line except an access keeps it.
#[test]
fn removing_an_ordering_line_loses_the_order() {
    let test = test();
    let mut text = String::new();
    for given in texts_of(&test) {
        let whole = Disassembly::read(&given.code, given.dialect).unwrap();
        if found(&test, &given, &whole).verdict != OrderKept::Kept {
            continue;
        }
        for (at, line) in whole.lines.iter().enumerate() {
            if line.kind != LineKind::Order {
                continue;
            }
            let mut less = whole.clone();
            less.lines.remove(at);
            let OrderFinding { verdict, why, .. } = found(&test, &given, &less);
            if verdict != OrderKept::Kept {
                writeln!(text, "{} without `{}`: {verdict:?}: {why}", given.name, line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// The memory instructions of every vendor, with their source accesses and flags.
#[test]
fn memory_instructions_of_every_vendor() {
    let test = test();
    let mut text = String::new();
    for given in texts_of(&test) {
        writeln!(text, "{}", given.name).unwrap();
        let machine = Disassembly::read(&given.code, given.dialect).unwrap();
        for (line, source) in machine.lines.iter().zip(align(&test, &given.unit, &machine).sources) {
            if matches!(line.kind, LineKind::Access(_) | LineKind::Order) {
                let source = source.map_or_else(|| "-".to_owned(), |source| format!("{source:?}"));
                let words = given.dialect.describe_line(&line.text, line.kind).join("; ");
                writeln!(text, "  {source}: {}\n      {words}", line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}
