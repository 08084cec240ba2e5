//! Parsing: every file in `parse_ok` and `parse_err` has its snapshot next to it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use litmus::{
    AccessKind, CallError, Compute, Flow, InstructionKind, ParseError, ParseErrors, ParseOptions, Performer,
    SplitHalf, SubgroupError, ThreadId,
};
use miette::{GraphicalReportHandler, GraphicalTheme};

pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Compares `show` of every input in a folder with the snapshot of the same stem.
pub fn check_folder(name: &str, extension: &str, show: impl Fn(&str, &str) -> String) -> BTreeSet<String> {
    let mut inputs = BTreeSet::new();
    let mut snapshots = BTreeSet::new();
    for entry in fs::read_dir(folder(name)).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        match file.rsplit_once('.').unwrap() {
            (stem, found) if found == extension => assert!(inputs.insert(stem.to_owned())),
            (stem, "snap") => assert!(snapshots.insert(stem.to_owned())),
            // insta writes `.snap.new` files after a failure.
            (_, "new") => {}
            _ => panic!("{file} has no business in {name}"),
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder(name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for stem in &inputs {
            let file = format!("{stem}.{extension}");
            let text = fs::read_to_string(folder(name).join(&file)).unwrap();
            insta::assert_snapshot!(stem.as_str(), show(&file, &text));
        }
    });
    let orphans: Vec<_> = snapshots.difference(&inputs).collect();
    assert!(orphans.is_empty(), "snapshots without an input in {name}: {orphans:?}");
    inputs
}

/// Renders the report for users, then the lines for programs.
fn render(errors: &ParseErrors) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(110)
        .with_links(false);
    let mut out = String::new();
    handler.render_report(&mut out, errors).unwrap();
    for message in errors.messages() {
        writeln!(out, "{}:{}: {} [{}]", message.line, message.column, message.text, message.code).unwrap();
    }
    out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn valid_texts() {
    check_folder("parse_ok", "litmus", |file, text| {
        let test = litmus::parse(text, file).unwrap_or_else(|errors| panic!("{}", render(&errors)));
        let printed = litmus::print(&test);
        assert_eq!(litmus::parse(&printed, file).unwrap(), test, "{printed}");
        let mut out = printed;
        writeln!(out, "---").unwrap();
        for location in &test.locations {
            let litmus::Location { name, init, scalar, components, reference, .. } = location;
            let vector = if location.is_vector() { format!(" × {components}") } else { String::new() };
            writeln!(out, "{name}: {init:?} {scalar:?}{vector} {reference:?}").unwrap();
        }
        for (index, thread) in test.threads.iter().enumerate() {
            writeln!(out, "P{}: {:?}", thread.number, thread.place).unwrap();
            for instruction in &thread.instructions {
                let text = instruction.kind.to_text(&test, ThreadId(index as u16));
                writeln!(out, "  {text}\n    {:?}", instruction.kind).unwrap();
            }
        }
        writeln!(out, "filter: {:?}\nquestion: {:?}", test.filter, test.question.map(|q| q.condition))
            .unwrap();
        out
    });
}

#[test]
fn every_instruction_has_an_example() {
    let tests: Vec<litmus::Test> = [
        "every-instruction.litmus",
        "host-and-api.litmus",
        "hsa-every-instruction.litmus",
        "vectors.litmus",
        "split-barriers.litmus",
        "subgroup-operations.litmus",
    ]
    .map(|file| litmus::parse(&fs::read_to_string(folder("parse_ok").join(file)).unwrap(), file).unwrap())
    .into();
    let threads = tests.iter().flat_map(|test| &test.threads);
    let kinds = threads.flat_map(|thread| &thread.instructions).map(|i| match &i.kind {
        InstructionKind::Access(access) => match (&access.kind, access.performer) {
            (_, Performer::Cooperative) => "cooperative",
            _ if access.place.address.is_some() => "addressed",
            _ if access.is_vector() => "vector",
            (AccessKind::Load(_), Performer::Invocation) => "load",
            (AccessKind::Store(_), Performer::Invocation) => "store",
            (AccessKind::Rmw { destination: Some(_), .. }, Performer::Invocation) => "rmw",
            (AccessKind::Rmw { destination: None, .. }, Performer::Invocation) => "update",
            (AccessKind::Await { .. }, Performer::Invocation) => "await",
        },
        InstructionKind::Fence { .. } => "fence",
        InstructionKind::ControlBarrier(_) => "control barrier",
        InstructionKind::SplitBarrier(barrier) if barrier.half == SplitHalf::Arrive => "arrival",
        InstructionKind::SplitBarrier(_) => "wait for arrivals",
        InstructionKind::Subgroup(operation) => operation.kind.keyword(),
        InstructionKind::System(operation) => operation.keyword(),
        InstructionKind::ShaderCall(_) => "call",
        InstructionKind::Interlock(_) => "interlock",
        InstructionKind::Compute(Compute::Arithmetic { .. }) => "arithmetic",
        InstructionKind::Flow(Flow::Label(_)) => "label",
        InstructionKind::Flow(Flow::Goto(_)) => "goto",
        InstructionKind::Flow(Flow::Branch { .. }) => "branch",
        InstructionKind::Compute(Compute::Move { .. }) => "move",
        InstructionKind::Compute(Compute::Compare { .. }) => "compare",
        InstructionKind::Flow(Flow::BranchIf { .. }) => "branch if",
    });
    assert_eq!(kinds.collect::<BTreeSet<_>>().len(), 26 + 19);
}

/// Checks that a folder has an example of every mistake in a list, named after its diagnostic code.
pub fn check_mistakes(
    folder: &str,
    extension: &str,
    codes: &[&str],
    read: impl Fn(&str, &str) -> ParseErrors,
    show: impl Fn(&ParseErrors) -> String,
) {
    let inputs = check_folder(folder, extension, |file, text| {
        let errors = read(text, file);
        let prefix = folder.strip_suffix("_err").unwrap();
        let code = format!("litmus::{prefix}::{}", file.split('.').next().unwrap());
        let found: Vec<String> = errors.messages().into_iter().map(|message| message.code).collect();
        assert!(found.contains(&code), "{file}: {found:?}\n{}", render(&errors));
        show(&errors)
    });
    let examples: BTreeSet<&str> = inputs.iter().map(|stem| stem.split('.').next().unwrap()).collect();
    // The text above the size limit is generated here.
    assert_eq!(examples, codes.iter().copied().filter(|code| *code != "too_large").collect());
}

#[test]
fn mistakes() {
    let strict = ParseOptions { strict_metadata: true };
    let strictly = |text: &str, file: &str| litmus::parse_with(text, file, strict).unwrap_err();
    check_mistakes("parse_err", "litmus", ParseError::CODES, strictly, render);
    let read = |text: &str, file: &str| litmus::parse(text, file).unwrap_err();
    check_mistakes("subgroup_err", "litmus", SubgroupError::CODES, read, render);
    check_mistakes("call_err", "litmus", CallError::CODES, read, render);
}

#[test]
fn texts_that_are_too_large() {
    let mut text = String::from("VULKAN large\n");
    text.push_str(&"é".repeat(1 << 19));
    let errors = litmus::parse(&text, "large.litmus").unwrap_err();
    let message = &errors.messages()[0];
    assert_eq!((message.line, message.column), (1, 1));
    assert_eq!(message.text, "text of 1048589 bytes; expected at most 1048576 bytes");
    assert!(errors.source_text().len() < 1000);
}

#[test]
fn unknown_keys_are_preserved_unless_strict() {
    let text = "VULKAN t\nauthor: me\n{ } P0@host ; ;";
    let test = litmus::parse(text, "t").unwrap();
    assert_eq!(test.metadata.unknown_keys[0].0, "author");
    assert_eq!(test.metadata.unknown_keys[0].1.line, 2);
    assert_eq!(test.metadata.comments, ["author: me"]);
}

#[test]
fn conditions_of_a_test() {
    let test = litmus::parse("VULKAN t\n{ x = 0; } P0@host ; ld.sc0 r0, x ;", "t").unwrap();
    let text =
        |condition: &str| litmus::parse_condition(condition, "--outcome", &test).map(|c| c.to_text(&test));
    assert_eq!(text("P0:r0=1 /\\ x = 2").unwrap(), "P0:r0 == 1 /\\ x == 2");
    for wrong in ["", "P0:r1 == 0", "x == 1 exists", "x == 1 /\\ §"] {
        let errors = text(wrong).unwrap_err();
        assert_eq!(errors.errors().len(), 1, "{wrong}: {errors:?}");
    }
}

/// Aliases of a vector share its bytes, the first component lowest.
#[test]
fn initial_values_of_vectors_and_their_aliases() {
    let text = "VULKAN t\n{ u16x4 v = {1, 2, 3, -1}; u32 low aliases v; u32x2 words aliases v; u64 all aliases v; \
                u8x3 bytes aliases words; u32 s = 9; u32x3 copied = s; u16x4 again = v; u8x2 cut = 0xff; }\n\
                P0@sg 0, wg 0, qf 0 ; ;";
    let test = litmus::parse(text, "t").unwrap();
    let values = |name: &str| -> Vec<u64> {
        let index = test.locations.iter().position(|location| location.name == name).unwrap();
        let id = litmus::LocationId(index as u16);
        (0..test.location(id).components).map(|component| test.initial_value(id, component).0).collect()
    };
    assert_eq!(values("v"), [1, 2, 3, 0xffff]);
    assert_eq!(values("low"), [0x0002_0001]);
    assert_eq!(values("words"), [0x0002_0001, 0xffff_0003]);
    assert_eq!(values("all"), [0xffff_0003_0002_0001]);
    assert_eq!(values("bytes"), [1, 0, 2]);
    assert_eq!(values("copied"), [9, 9, 9]);
    assert_eq!(values("again"), [1, 2, 3, 0xffff]);
    assert_eq!(values("cut"), [0xff, 0xff]);
    assert_eq!(test.initial_bits(litmus::LocationId(0)), 0xffff_0003_0002_0001);
}

/// `check` warns about these storage classes.
#[test]
fn ignored_storage_classes_have_positions() {
    let text = fs::read_to_string(folder("parse_ok").join("ignored-semantics.litmus")).unwrap();
    let test = litmus::parse(&text, "ignored").unwrap();
    let found: Vec<(u32, u32, &str, bool)> = litmus::ignored_words(&test, &text)
        .into_iter()
        .map(|ignored| (ignored.span.line, ignored.span.column, ignored.class.name(), ignored.orders_nothing))
        .collect();
    let expected = [
        (4, 27, "SubgroupMemory", false),
        (5, 19, "AtomicCounterMemory", true),
        (5, 36, "CrossWorkgroupMemory", true),
        (6, 15, "AtomicCounterMemory", false),
        (6, 39, "SubgroupMemory", false),
        (7, 41, "SubgroupMemory", false),
        (8, 17, "SubgroupMemory", true),
    ];
    assert_eq!(found, expected);
    // A location with such a name is not a storage class.
    let named = "VULKAN t\n{ semsubgroup = 0; }\nP0@sg 0, wg 0, qf 0 ;\nld.atom.dv.sc0 r0, semsubgroup ;";
    assert_eq!(litmus::ignored_words(&litmus::parse(named, "t").unwrap(), named), []);
}

/// Each workgroup has its workgroup memory, but the model has one location.
#[test]
fn workgroup_memory_of_two_workgroups_is_found() {
    let found = |second: &str, class: &str| {
        let text = format!(
            "VULKAN T\n{{ x = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, {second}, qf 0 ;\nst.{class} x, 1 | ld.{class} r0, x ;\nexists (P1:r0 == 1)\n"
        );
        let test = litmus::parse(&text, "T").unwrap();
        let found = test.foreign_workgroup_accesses();
        found.iter().map(|(_, span)| (span.line, span.column)).collect::<Vec<_>>()
    };
    assert_eq!(found("wg 1", "sc1"), [(4, 15)]);
    assert_eq!(found("wg 0", "sc1"), []);
    assert_eq!(found("wg 1", "sc0"), []);
}

#[test]
fn system_synchronization_of_a_removed_thread_is_not_printed() {
    let vulkan = "VULKAN t\n{ x = 0; }\n{ ssw 0 1; }\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 ;\n\
                  st.sc0 x, 1 | ld.sc0 r0, x ;\nexists ([x] == 1)\n";
    let hsa = "HSA t\n{ x = 0; }\n{ pkt P0 P1; }\nP0@wave 0, wg 0, agent 0 | P1@wave 0, wg 1, agent 0 ;\n\
               st_global_u32 1, [x] | ld_global_u32 $s0, [x] ;\nexists (x = 1)\n";
    for (text, pair) in [(vulkan, "ssw"), (hsa, "pkt")] {
        let mut test = litmus::parse(text, "t").unwrap();
        assert!(litmus::print(&test).contains(pair), "{text}");
        test.threads.truncate(1);
        let printed = litmus::print(&test);
        assert!(!printed.contains(pair), "{printed}");
        assert!(litmus::parse(&printed, "t").is_ok(), "{printed}");
    }
}
