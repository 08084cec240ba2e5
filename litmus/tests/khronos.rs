//! Khronos' `.test` format: accepted and refused files, and printing.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use litmus::convert::{guard_forced_reads, to_khronos, to_vulkan};
use litmus::{Dialect, KhronosError, Test, ThreadId, parse, print};
use proptest::prelude::*;

use crate::parse::{check_folder, check_mistakes};
use crate::round_trip::grammar::Grammar;

/// Parsing printed text gives the same test, and printing it again gives the same text.
fn round_trip(test: &Test, file: &str) -> String {
    let printed = print(test);
    let again = parse(&printed, file).unwrap_or_else(|e| panic!("{file}: {:?}\n{printed}", e.messages()));
    assert_eq!(&again, test, "{file}\n{printed}");
    assert_eq!(print(&again), printed, "{file}");
    printed
}

#[test]
fn valid_files() {
    check_folder("khronos_ok", "test", |file, text| {
        let test = parse(text, file).unwrap_or_else(|e| panic!("{file}: {:?}", e.messages()));
        let mut out = round_trip(&test, file);
        writeln!(out, "---").unwrap();
        for location in &test.locations {
            writeln!(out, "{}: {:?}", location.name, location.init).unwrap();
        }
        let khronos = test.khronos.as_ref().unwrap();
        for (index, thread) in test.threads.iter().enumerate() {
            writeln!(out, "thread {}: {:?}", thread.number, thread.place).unwrap();
            for (instruction, read) in thread.instructions.iter().zip(&khronos.read_values[index]) {
                let text = instruction.kind.to_text(&test, ThreadId(index as u16));
                writeln!(out, "  {text}    reads {read:?}").unwrap();
            }
        }
        for query in &khronos.queries {
            writeln!(out, "{:?} {} {:?}", query.kind, query.without_chains, query.terms).unwrap();
        }
        out
    });
}

#[test]
fn mistakes() {
    let read = |text: &str, file: &str| parse(text, file).unwrap_err();
    check_mistakes("khronos_err", "test", KhronosError::CODES, read, |errors| {
        errors.messages().iter().fold(String::new(), |mut out, message| {
            writeln!(out, "{}:{}: {} [{}]", message.line, message.column, message.text, message.code)
                .unwrap();
            out
        })
    });
}

#[test]
fn bounds() {
    let many = |line: &str, count: usize| format!("NEWTHREAD\n{}", line.repeat(count));
    assert!(parse(&many("avdevice\n", 100), "t.test").is_ok());
    let errors = parse(&many("avdevice\n", 101), "t.test").unwrap_err();
    assert_eq!(errors.messages()[0].text, "too many instructions; expected at most 100 instructions");
    let errors = parse(&"NEWTHREAD\navdevice\n".repeat(65), "t.test").unwrap_err();
    assert_eq!(errors.messages()[0].line, 129);
}

#[test]
fn the_extension_or_the_first_word_selects_the_format() {
    let khronos = "// a comment\r\n\r\nNEWTHREAD\r\nst.sc0 x = 1\r\n";
    for name in ["folder/t.test", "t", "folder.litmus/t"] {
        assert_eq!(parse(khronos, name).unwrap().dialect, Dialect::Khronos, "{name}");
    }
    assert!(parse(khronos, "t.litmus").is_err());
    assert!(parse("VULKAN t\n{ } P0@host ; ;", "t.test").is_err());
    assert_eq!(parse("VULKAN t\n{ } P0@host ; ;", "t").unwrap().dialect, Dialect::Vulkan);
}

#[test]
fn the_suite_of_khronos() {
    let Some(corpora) = std::env::var_os("VK_LITMUS_CORPORA") else {
        println!("1 skipped: VK_LITMUS_CORPORA is not set");
        return;
    };
    let (mut files, mut converted) = (0, 0);
    for entry in fs::read_dir(Path::new(&corpora).join("khronos")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "test") {
            continue;
        }
        let (file, text) = (path.to_str().unwrap(), fs::read_to_string(&path).unwrap());
        let test = parse(&text, file).unwrap_or_else(|e| panic!("{file}: {:?}", e.messages()));
        round_trip(&test, file);
        let program = guard_forced_reads(&test);
        assert_eq!(parse(&print(&program), "guarded.litmus").unwrap().threads, program.threads, "{file}");
        converted += usize::from(to_vulkan(&test).is_ok());
        files += 1;
    }
    println!("{files} files, {converted} of them in the native dialect too");
    assert!(files >= 50);
    assert!(converted * 10 >= files * 9, "{converted} of {files}");
}

#[test]
fn forced_values_become_filters_and_guards() {
    let text = "NEWTHREAD 0\nst.sc0 x = 1\nNEWTHREAD 1\nld.sc0 x = 1\nld.sc0 x\nSATISFIABLE consistent[X] && #dr>0\n";
    let test = parse(text, "t.test").unwrap();
    let native = "VULKAN t
SATISFIABLE consistent[X] && #dr>0
{
}
 P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;
 st.sc0 x, 1         | ld.sc0 r0, x        ;
                     | ld.sc0 r1, x        ;
filter (P1:r0 == 1)
";
    assert_eq!(print(&to_vulkan(&test).unwrap()), native);
    let guards = "VULKAN t
{
}
 P0@sg 0, wg 0, qf 0 | P1@sg 0, wg 0, qf 0 ;
 st.sc0 x, 1         | ld.sc0 r0, x        ;
                     | bne r0, 1, LC00     ;
                     | ld.sc0 r1, x        ;
                     | LC00:               ;
";
    assert_eq!(print(&guard_forced_reads(&test)), guards);
    // Two writes of one value are a contradiction, which a filter cannot express.
    let twice = text.replace("st.sc0 x = 1\n", "st.sc0 x = 1\nst.sc0 x = 1\n");
    assert!(to_vulkan(&parse(&twice, "t.test").unwrap()).is_err());
}

#[test]
fn conditions_become_values() {
    let text = "VULKAN t
{ x = 0; y = 0; }
P0@sg 0, wg 1, qf 0 | P1@sg 0, wg 0, qf 0 ;
st.atom.dv.sc0 x, 1 | ld.atom.dv.sc0 r3, y ;
st.atom.dv.sc0 y, 1 | ld.atom.dv.sc0 r1, x ;
~exists (P1:r3 == 1 /\\ P1:r1 == 0)";
    let test = parse(text, "t.litmus").unwrap();
    let lines = "NEWTHREAD 0
ld.atom.scopedev.sc0 y = 1
ld.atom.scopedev.sc0 x = 0
NEWWG
NEWSG
NEWTHREAD 1
st.atom.scopedev.sc0 x = 1
st.atom.scopedev.sc0 y = 1
NOSOLUTION consistent[X]
";
    assert_eq!(print(&to_khronos(&test).unwrap()), lines);
    // The claim of a test takes precedence over its condition.
    let (program, asked) = lines.rsplit_once("NOSOLUTION").unwrap();
    for (claims, queries) in [
        ("expect: vulkan allowed", "SATISFIABLE consistent[X]\n".to_owned()),
        ("expect: vulkan allowed racy", "SATISFIABLE consistent[X]\n".to_owned()),
        (
            "expect: vulkan allowed free",
            "SATISFIABLE consistent[X]\nNOSOLUTION consistent[X] && #dr>0\n".to_owned(),
        ),
        ("expect: vulkan forbidden free", format!("NOSOLUTION{asked}")),
        ("expect: vulkan forbidden\nexpect: khronos-alloy allowed", "SATISFIABLE consistent[X]\n".to_owned()),
        ("expect: sc allowed", format!("NOSOLUTION{asked}")),
    ] {
        let claiming = parse(&text.replacen("t\n", &format!("t\n{claims}\n"), 1), "t.litmus").unwrap();
        assert_eq!(print(&to_khronos(&claiming).unwrap()), format!("{program}{queries}"), "{claims}");
    }
    for (from, to) in [
        ("== 0)", "== 7)"),
        ("~exists", "forall"),
        (".sc0 r3", ".sc2 r3"),
        ("x = 0", "x = 5"),
        ("r1, x", "r3, x"),
    ] {
        let other = parse(&text.replace(from, to), "t.litmus");
        assert!(other.is_err() || to_khronos(&other.unwrap()).is_err(), "{from} -> {to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_files_round_trip(choices in proptest::collection::vec(any::<u16>(), 0..100)) {
        let text = Grammar::new(include_str!("round_trip/khronos.grammar")).derive("file", &choices);
        let test = parse(&text, "t.test").map_err(|e| TestCaseError::fail(format!("{text}{:?}", e.messages())))?;
        round_trip(&test, "t.test");
        let program = guard_forced_reads(&test);
        prop_assert_eq!(&parse(&print(&program), "t.litmus").unwrap().threads, &program.threads);
    }
}
