//! herd's models, loaded unchanged, have the same outcomes here and in herd.
//!
//! `VK_LITMUS_HERD` names the herd7 binary (`ci/herd` fetches 7.58); without it, the comparison is skipped.
//! The tests are the part of the corpus that herd's C dialect can express, without scopes and storage
//! classes.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::oracle::UNLIMITED;
use crate::vocabulary;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use litmus::{
    Access, AccessKind, ArithmeticOperation, Compute, InstructionKind, LocationInit, Observable, Operand,
    Order, Race, RegisterInit, RmwOperation, Term, Test, Thread,
};
use model::{Model, PredictError, predict};

/// Models of herd's library that herd can evaluate on C programs.
const MODELS: &[&str] = &[
    "rc11",
    "c11_base",
    "c11_simp",
    "c11_partialSC",
    "c11_orig",
    "simple-c11",
    "c11_cos",
    "sc",
    "uni",
    "uniproc",
    "uniproc+sca",
    "minimal",
    "minimalcat",
    "mini",
    "naked",
    "compat",
    "coscat",
    "cosllh",
    "cos",
    "cos-opt",
    "filters",
    "fences",
    "mips-tso",
    "simple-arm",
];

/// Values that depend on themselves: herd keeps them as unknowns (`S8`) or drops the execution; here they are
/// numbers that the program can compute.
const OUT_OF_THIN_AIR: &[&str] = &["lb/LB+data-data", "lb/LB+false-data-data", "lb/LB+masked-data-data"];

fn c11_order(order: Order) -> &'static str {
    match order {
        Order::Relaxed => "memory_order_relaxed",
        Order::Acquire => "memory_order_acquire",
        Order::Release => "memory_order_release",
        Order::AcquireRelease => "memory_order_acq_rel",
    }
}

fn operand(thread: &Thread, operand: Operand) -> String {
    match operand {
        Operand::Constant(number) => number.to_string(),
        Operand::Register(register) => thread.registers[usize::from(register.0)].name.clone(),
    }
}

fn c11_function(operation: ArithmeticOperation) -> Option<(&'static str, &'static str)> {
    match operation {
        ArithmeticOperation::Add => Some(("add", "+")),
        ArithmeticOperation::Subtract => Some(("sub", "-")),
        ArithmeticOperation::And => Some(("and", "&")),
        ArithmeticOperation::Or => Some(("or", "|")),
        ArithmeticOperation::Xor => Some(("xor", "^")),
        _ => None,
    }
}

/// Returns the code of a thread in C; `None` if herd's C dialect cannot express it or gives it another
/// meaning.
fn c_statements(test: &Test, thread: &Thread) -> Option<String> {
    let mut text = String::new();
    let mut assigned = BTreeSet::new();
    let name = |register: litmus::RegisterId| thread.registers[usize::from(register.0)].name.as_str();
    for instruction in &thread.instructions {
        if !instruction.kind.destinations().all(|register| assigned.insert(register)) {
            return None;
        }
        let line = match &instruction.kind {
            InstructionKind::Access(access) => {
                let place = test.location(access.place.location).name.as_str();
                if access.place.scalar.is_some() {
                    return None;
                }
                let atomic = match access.strength {
                    Access::Atomic { semantics, .. } => Some(c11_order(semantics.order)),
                    _ => None,
                };
                if access.components() > 1 || access.place.offset > 0 || access.place.address.is_some() {
                    return None;
                }
                match (access.kind, atomic) {
                    (AccessKind::Load(to), None) => format!("int {} = *{place};", name(to.first())),
                    (AccessKind::Load(to), Some(order)) => {
                        format!("int {} = atomic_load_explicit({place}, {order});", name(to.first()))
                    }
                    (AccessKind::Store(value), None) => {
                        format!("*{place} = {};", operand(thread, value.first()))
                    }
                    (AccessKind::Store(value), Some(order)) => {
                        format!(
                            "atomic_store_explicit({place}, {}, {order});",
                            operand(thread, value.first())
                        )
                    }
                    (AccessKind::Rmw { destination: Some(to), operation }, Some(order)) => {
                        let (function, value) = match operation {
                            RmwOperation::Exchange(value) => ("exchange".to_owned(), value),
                            RmwOperation::Fetch(operation, value) => {
                                (format!("fetch_{}", c11_function(operation)?.0), value)
                            }
                            RmwOperation::CompareExchange { .. } => return None,
                        };
                        let value = operand(thread, value);
                        format!("int {} = atomic_{function}_explicit({place}, {value}, {order});", name(to))
                    }
                    _ => return None,
                }
            }
            InstructionKind::Fence { semantics, .. } => {
                format!("atomic_thread_fence({});", c11_order(semantics.order))
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => format!(
                "int {} = {} {} {};",
                name(*destination),
                operand(thread, *left),
                c11_function(*operation)?.1,
                operand(thread, *right)
            ),
            _ => return None,
        };
        writeln!(text, "  {line}").unwrap();
    }
    // Numbers in herd have 32 bits.
    if text.split(|c: char| !c.is_ascii_digit()).any(|number| number.len() > 9) {
        return None;
    }
    // In C, a register with an initial value is a parameter.
    let read_first = thread.registers.iter().any(|register| register.init != RegisterInit::Constant(0));
    (!read_first).then_some(text)
}

/// Prints the test in herd's C dialect, with all locations observed.
fn print_c_program(test: &Test) -> Option<String> {
    let host = |thread: &Thread| thread.place == litmus::ThreadPlace::Host;
    let kinds =
        test.threads.iter().flat_map(|thread| &thread.instructions).map(|instruction| &instruction.kind);
    // herd's models load without sequentially consistent operations.
    if kinds.into_iter().any(|kind| kind.semantics().any(|semantics| semantics.sequential)) {
        return None;
    }
    if !test.system_sync.is_empty()
        || test.threads.iter().any(host)
        || test.locations.iter().any(|location| location.components > 1)
    {
        return None;
    }
    let mut initial = String::new();
    for location in &test.locations {
        let LocationInit::Constant(value) = location.init else { return None };
        if location.scalar_type().bytes() != 4 || i32::try_from(value).is_err() {
            return None;
        }
        write!(initial, "{} = {value}; ", location.name).unwrap();
    }
    let names: Vec<&str> = test.locations.iter().map(|location| location.name.as_str()).collect();
    let parameters = names.iter().map(|name| format!("int* {name}")).collect::<Vec<_>>().join(", ");
    let mut text = format!("C test\n{{ {initial}}}\n");
    let mut shown: Vec<String> = names.iter().map(|name| format!("{name};")).collect();
    for (index, thread) in test.threads.iter().enumerate() {
        let body = c_statements(test, thread)?;
        writeln!(text, "P{index} ({parameters}) {{\n{body}}}").unwrap();
        for register in thread.instructions.iter().flat_map(|instruction| instruction.kind.destinations()) {
            shown.push(format!("{index}:{};", thread.registers[usize::from(register.0)].name));
        }
    }
    write!(text, "locations [{}]\nexists ({} = 0)\n", shown.join(" "), names.first()?).unwrap();
    Some(text)
}

/// The outcomes, and true if the program is undefined.
type HerdAnswer = (BTreeSet<BTreeSet<String>>, bool);

fn run_herd(model: &Path, test: &Path) -> HerdAnswer {
    let program = std::env::var_os("VK_LITMUS_HERD").unwrap();
    let output = Command::new(program).arg("-model").arg(model).arg(test).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Observation"), "{}: {}", model.display(), String::from_utf8_lossy(&output.stderr));
    let states = text
        .lines()
        .skip_while(|line| !line.starts_with("States "))
        .skip(1)
        .take_while(|line| line.contains('='))
        .map(|line| {
            line.split(';')
                .map(|part| part.trim().replace(['[', ']'], ""))
                .filter(|part| !part.is_empty())
                .collect()
        })
        .collect();
    (states, text.contains("\nUndef\n") || text.contains("Flag"))
}

fn run_model(model: &Model, test: &Test) -> HerdAnswer {
    let whole = (0..test.locations.len()).map(|index| Term::Location(litmus::LocationId(index as u16), 0));
    let test = Test { listed_terms: whole.collect(), filter: None, question: None, ..test.clone() };
    let prediction = predict(&test, model, &UNLIMITED).unwrap();
    assert!(prediction.complete, "{}", test.name);
    let allowed = prediction.outcomes.iter().filter(|(_, predicted)| predicted.allowed);
    let states = allowed
        .map(|(outcome, _)| {
            let values = prediction.observables.iter().zip(&outcome.0);
            values
                .map(|(observable, value)| match observable {
                    Observable::Register(thread, register) => {
                        let registers = &test.thread(*thread).registers;
                        format!(
                            "{}:{}={}",
                            thread.0,
                            registers[usize::from(register.0)].name,
                            value.0 as u32 as i32
                        )
                    }
                    Observable::Location(location, _) => {
                        format!("{}={}", test.location(*location).name, value.0 as u32 as i32)
                    }
                })
                .collect()
        })
        .collect();
    (states, prediction.race == Race::Racy)
}

/// Release and acquire, in the forms of herd's language.
const WITH_HERD_FORMS: &str = r#"
"by forms"
include "stdlib.cat"
if "cos-opt"
  include "not-there.cat"
else
  include "cos.cat"
end
procedure ordered(r, name) =
  let both = r | name
  acyclic both
end
procedure kept(first, second) =
  call ordered(first, second)
end
let fence = try fencerel(MFENCE) with {}
let sw = [REL | ACQ_REL | SC]; rf; [ACQ | ACQ_REL | SC]
let hb = (po | sw | fence)+
with mo from generate_orders(W, co0)
call kept(hb & loc, rf | fr | mo) as coherence
empty rmw & (fr; co) as atomicity
call inclusion(mo, co) as the-same
let dr = ((W * M) | (M * W)) & loc & ext \ (hb | hb^-1 | A * A | IW * M | M * IW)
undefined_unless empty dr as race
"#;

/// The same without these forms.
const WITHOUT_HERD_FORMS: &str = r#"
(* options: rmw=fused init=per-location *)
let sw = [REL]; rf; [ACQ]
let hb = (po | sw)+
acyclic (hb & loc) | rf | fr | co as coherence
let m = R | W
let dr = (((W * m) | (m * W)) & loc & ext) \ (hb | hb^-1 | ATOM * ATOM | IW * m | m * IW)
flag ~empty dr as race
"#;

#[test]
fn forms_of_herd_equal_their_expansion() {
    let by_forms =
        Model::from_text("forms", WITH_HERD_FORMS, &|_| None).unwrap_or_else(|error| panic!("{error:?}"));
    let plainly =
        Model::from_text("plain", WITHOUT_HERD_FORMS, &|_| None).unwrap_or_else(|error| panic!("{error:?}"));
    let mut compared = 0;
    for entry in litmus::corpus::tests() {
        let test =
            litmus::parse(entry.text, &entry.id).unwrap_or_else(|error| panic!("{}: {error:?}", entry.id));
        let (Ok(one), Ok(other)) =
            (predict(&test, &by_forms, &UNLIMITED), predict(&test, &plainly, &UNLIMITED))
        else {
            continue;
        };
        assert_eq!((one.outcomes, one.race), (other.outcomes, other.race), "{}", entry.id);
        compared += 1;
    }
    assert!(compared > 500, "{compared} tests");
}

/// An axiom of a procedure has the name of the call, and the body of a procedure sees only earlier
/// definitions.
#[test]
fn axioms_of_procedures_have_the_name_of_the_call() {
    let text = "let r = po\nprocedure p(x) = acyclic x | r as inner end\nlet r = rf\ncall p(co) as outer\ncall p(rf)\n";
    let model = model::cat::parse_model("model.cat", text, &|_| None).unwrap();
    let families = model::cat::ClassFamilies::from_classes([0]);
    let plan = model::cat::compile(&model, &vocabulary::vulkan(), &families).unwrap();
    let names: Vec<_> = plan.axioms.iter().map(|axiom| axiom.name.as_deref()).collect();
    assert_eq!(names, [Some("outer"), Some("p")]);
    let spelt = model::cat::parse_model(
        "model.cat",
        "let a = po\nlet b = rf\nacyclic co | a as outer\nacyclic b | a as p",
        &|_| None,
    )
    .unwrap();
    let spelt = model::cat::compile(&spelt, &vocabulary::vulkan(), &families).unwrap();
    assert_eq!(plan.nodes, spelt.nodes);
}

#[test]
fn models_of_herd_load_unchanged_and_answer_as_in_herd() {
    let Some(herd_program) = std::env::var_os("VK_LITMUS_HERD") else {
        println!("skipped: VK_LITMUS_HERD is not set; ci/herd fetches herd 7.58");
        return;
    };
    let shown = Command::new(herd_program).arg("-libdir").output().unwrap().stdout;
    let library = PathBuf::from(String::from_utf8(shown).unwrap().trim());
    let include = |name: &str| std::fs::read_to_string(library.join(name)).ok();
    let folder = tempfile::tempdir().unwrap();
    let entries = litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests());
    let mut tests = Vec::new();
    for entry in entries {
        let test =
            litmus::parse(entry.text, &entry.id).unwrap_or_else(|error| panic!("{}: {error:?}", entry.id));
        if OUT_OF_THIN_AIR.contains(&entry.id.as_str()) {
            continue;
        }
        let text = (test.dialect == litmus::Dialect::Vulkan).then(|| print_c_program(&test)).flatten();
        // Only the models of the Vulkan texts have events for some accesses and scopes.
        let known = Model::shipped("sc").unwrap().unwrap();
        if let Err(PredictError::NotAvailable { .. }) = predict(&test, &known, &UNLIMITED) {
            continue;
        }
        if let Some(text) = text {
            let path = folder.path().join(format!("{}.litmus", tests.len()));
            std::fs::write(&path, text).unwrap();
            tests.push((entry.id, test, path));
        }
    }
    assert!(tests.len() >= 100, "{} tests", tests.len());
    let mut differing = Vec::new();
    for name in MODELS {
        let path = library.join(format!("{name}.cat"));
        let model = match Model::from_text(name, &std::fs::read_to_string(&path).unwrap(), &include) {
            Ok(model) => model,
            Err(error) => {
                differing.push(format!("{name}: {error:?}"));
                continue;
            }
        };
        let mut equal = 0;
        for (id, test, file) in &tests {
            let (theirs, own) = (run_herd(&path, file), run_model(&model, test));
            if theirs == own {
                equal += 1;
            } else {
                differing.push(format!("{name} {id}: herd {theirs:?}, here {own:?}"));
            }
        }
        println!("{name}: {equal} of {} tests with herd's outcomes", tests.len());
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
