//! The tables of order requirements, on machine code of drivers of every vendor for `mp/MP+rel-acq`.
//!
//! Each order is checked as it is, and with each ordering line removed.
//! `tests/texts/VENDOR-CHIP/FORM.THREAD.txt` has the last NIR and the machine code, as `codegen --emit ir`
//! prints them with Mesa 26.2.6.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use codegen::disassembly::{DisassemblerDialect, LineKind};
use codegen::order::{OrderFinding, OrderVerdict, check_nir, check_order, find_required_orders};
use codegen::{Disassembly, Form, FormKernel, KernelSizes, align, form_kernels};
use litmus::Test;

/// Separates NIR and machine code.
const CODE_HEADING: &str = "=== machine code\n";

/// A text with its origin.
struct SampleText {
    name: String,
    dialect: &'static DisassemblerDialect,
    target: &'static str,
    form_kernel: FormKernel,
    nir: String,
    code: String,
}

fn parse_test() -> Test {
    let entry = litmus::corpus::tests().into_iter().find(|test| test.id == "mp/MP+rel-acq").unwrap();
    litmus::parse(entry.text, &entry.id).unwrap()
}

fn find_kernel(test: &Test, form: Form, thread: &str) -> FormKernel {
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

fn list_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn load_samples(test: &Test) -> Vec<SampleText> {
    let mut all = Vec::new();
    for folder in list_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts")) {
        let device = folder.file_name().unwrap().to_str().unwrap().replace('-', ":");
        let (vendor, chip) = vendor::parse_selector(&device).unwrap();
        for path in list_files(&folder) {
            let file = path.file_stem().unwrap().to_str().unwrap();
            let (form, thread) = file.rsplit_once('.').unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let (nir, code) = text.split_once(CODE_HEADING).unwrap();
            all.push(SampleText {
                name: format!("{device} {form} {thread}"),
                dialect: vendor.dialect,
                target: vendor.find_family(chip).unwrap().target,
                form_kernel: find_kernel(test, form.parse().unwrap(), thread),
                nir: nir.to_owned(),
                code: code.to_owned(),
            });
        }
    }
    all
}

/// Returns the check of the only order of a kernel of the test.
fn check_only_order(test: &Test, sample: &SampleText, machine: &Disassembly) -> OrderFinding {
    let [required] = find_required_orders(test, &sample.form_kernel).try_into().unwrap();
    check_order(&required, machine, &align(test, &sample.form_kernel, machine), sample.target)
}

#[test]
fn orders_of_every_vendor() {
    let test = parse_test();
    let mut text = String::new();
    for sample in load_samples(&test) {
        let machine = Disassembly::parse(&sample.code, sample.dialect).unwrap();
        let OrderFinding { verdict, why, .. } = check_only_order(&test, &sample, &machine);
        writeln!(text, "{}: {verdict:?}: {why}", sample.name).unwrap();
        let [required] = find_required_orders(&test, &sample.form_kernel).try_into().unwrap();
        if let Some(OrderFinding { verdict, why, .. }) = check_nir(&required, &sample.nir, 2) {
            writeln!(text, "    NIR: {verdict:?}: {why}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// Removing a required line loses the order; removing any other line except an access keeps it.
#[test]
fn removing_an_ordering_line_loses_the_order() {
    let test = parse_test();
    let mut text = String::new();
    for sample in load_samples(&test) {
        let original = Disassembly::parse(&sample.code, sample.dialect).unwrap();
        if check_only_order(&test, &sample, &original).verdict != OrderVerdict::Kept {
            continue;
        }
        for (at, line) in original.lines.iter().enumerate() {
            if line.kind != LineKind::Order {
                continue;
            }
            let mut reduced = original.clone();
            reduced.lines.remove(at);
            let OrderFinding { verdict, why, .. } = check_only_order(&test, &sample, &reduced);
            if verdict != OrderVerdict::Kept {
                writeln!(text, "{} without `{}`: {verdict:?}: {why}", sample.name, line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// The memory instructions of every vendor, with their source accesses and flags.
#[test]
fn memory_instructions_of_every_vendor() {
    let test = parse_test();
    let mut text = String::new();
    for sample in load_samples(&test) {
        writeln!(text, "{}", sample.name).unwrap();
        let machine = Disassembly::parse(&sample.code, sample.dialect).unwrap();
        for (line, source) in machine.lines.iter().zip(align(&test, &sample.form_kernel, &machine).sources) {
            if matches!(line.kind, LineKind::Access(_) | LineKind::Order) {
                let source = source.map_or_else(|| "-".to_owned(), |source| format!("{source:?}"));
                let words = sample.dialect.describe_line(&line.text, line.kind).join("; ");
                writeln!(text, "  {source}: {}\n      {words}", line.text).unwrap();
            }
        }
    }
    insta::assert_snapshot!(text);
}
