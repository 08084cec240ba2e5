//! Round trips: printed tests parse to equal tests, and no text makes the parser fail internally.

#[path = "../../../harness/model/witness/src/generate/grammar.rs"]
pub mod grammar;
mod hsa;

use std::fs;
use std::path::Path;

use litmus::{parse, print};
use proptest::prelude::*;

use grammar::Grammar;

/// Parses a text; if that succeeds, checks that the printed form parses to the same test.
fn check_text(text: &str) -> Result<bool, TestCaseError> {
    match parse(text, "text.litmus") {
        Ok(test) => {
            let printed = print(&test);
            match parse(&printed, "text.litmus") {
                Ok(again) => prop_assert_eq!(&again, &test, "{}", printed),
                Err(errors) => prop_assert!(false, "{:?}\n{}", errors.messages(), printed),
            }
            Ok(true)
        }
        Err(errors) => {
            prop_assert!(!errors.errors().is_empty());
            for message in errors.messages() {
                prop_assert!(message.line >= 1 && message.column >= 1 && !message.text.is_empty());
            }
            Ok(false)
        }
    }
}

/// Seed texts for random mutation.
fn valid_texts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parse_ok");
    let mut texts: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "litmus"))
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    texts.sort();
    texts
}

/// Fragments of litmus texts.
const PIECES: [&str; 54] = [
    "VULKAN ",
    "{",
    "}",
    ";",
    "|",
    ",",
    ".",
    ":",
    "(",
    ")",
    "[",
    "]",
    "@",
    "=",
    "==",
    "!=",
    "<",
    "<<",
    ">>",
    "(*",
    "*)",
    "/\\",
    "\\/",
    "~",
    "not ",
    "&",
    "+",
    "-",
    "0",
    "1",
    "0x",
    "99999999999999999999",
    "x",
    "r0",
    "P0",
    "LC00",
    "LC00:",
    "ld",
    "st",
    ".atom",
    ".acq",
    ".dv",
    ".sc0",
    ".semsc0",
    "$s0",
    "$c0",
    "@end",
    "ld_global_u32 ",
    "atomic_st_global_rlx_wg_u32 ",
    "_",
    "exists ",
    "filter ",
    "\n",
    "é",
];

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn printed_tests_parse_to_the_same_test(choices in prop::collection::vec(any::<u16>(), 0..400)) {
        let text = Grammar::new(include_str!("native.grammar")).derive("test", &choices);
        let read = check_text(&text)?;
        prop_assert!(read, "{:?}\n{text}", parse(&text, "random.litmus").map_err(|errors| errors.messages()));
        // Nothing is lost: the texts of the grammar are those of the printer, apart from white space.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words(&print(&parse(&text, "random.litmus").unwrap())), words(&text));
    }

    #[test]
    fn printed_hsa_tests_parse_to_the_same_test(text in hsa::text(1..=4, 8)) {
        let read = check_text(&text)?;
        prop_assert!(read, "{:?}\n{text}", parse(&text, "random.litmus").map_err(|errors| errors.messages()));
    }

    #[test]
    fn damaged_tests_cause_no_panic(
        source in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, any::<prop::sample::Index>()), 1..6),
    ) {
        let texts = valid_texts();
        let mut text: Vec<char> = texts[source.index(texts.len())].chars().collect();
        for (place, length, piece) in damage {
            let start = place.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, PIECES[piece.index(PIECES.len())].chars());
        }
        check_text(&text.into_iter().collect::<String>())?;
    }

    #[test]
    fn random_fragments_cause_no_panic(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..200)) {
        let soup = pieces.concat();
        check_text(&soup)?;
        check_text(&format!("VULKAN soup\n{{ x = 0; {soup}"))?;
        check_text(&format!("VULKAN soup\n{{ }} P0@host ; {soup}"))?;
        check_text(&format!("HSA soup\n{{ x = 0; }} P0@wave 0, wg 0, agent 0 ; {soup}"))?;
        check_text(&format!("VULKAN soup\n{{ x = 0; }} P0@host ; ld.sc0 r0, x ; exists {soup}"))?;
    }

    #[test]
    fn random_texts_cause_no_panic(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check_text(&text)?;
        check_text(&format!("VULKAN {text}"))?;
        check_text(&String::from_utf8_lossy(&bytes))?;
    }
}

#[test]
fn long_texts_cause_no_panic() {
    let starts = [
        "",
        "VULKAN n\n",
        "VULKAN n { ",
        "VULKAN n { x = 0; } { ",
        "VULKAN n { x = 0; } ",
        "VULKAN n { x = 0; } P0@host ; ",
        "VULKAN n { x = 0; } P0@host ; ld.sc0 r0, x ; exists ",
        "HSA n { x = 0; } P0@wave 0, wg 0, agent 0 ; ",
    ];
    let repeats = [
        "(",
        "~",
        "~(",
        "((x == 0) /\\ ",
        "x == 0 /\\ ",
        "_",
        "é",
        "é\n",
        "|",
        ";",
        "|;",
        "\n",
        "\"",
        "{",
        "0",
        "0x1",
        ".",
        ".dv",
        "x ",
        "x=0;",
        "a b c=",
        "P0:r0=0;",
        "1:r1=0;P2:r2=0;",
        "ssw 0 0;",
        "P0@host|",
        "ld.sc0 r0, x;",
        "ld.sc0 r0, x\n",
        "LC00:;",
        "foo;",
        "goto LC00;",
        "expect: a allowed\n",
        "why:\n",
        "(*",
        "(**)",
        "<<",
        "<<>>",
        "k: v\n",
        "x == 0 \n",
    ];
    for (first, start) in starts.into_iter().enumerate() {
        for (second, repeat) in repeats.into_iter().enumerate() {
            // One in eight texts has the maximum length.
            let longest = (first + second) % 8 == 0;
            let room = if longest { litmus::syntax::MAX_TEXT_BYTES - 100 } else { 1 << 16 };
            let text = format!("{start}{}", repeat.repeat(room / repeat.len()));
            let result = check_text(&text);
            assert!(result.is_ok(), "{start:?} and many {repeat:?}: {result:?}");
        }
    }
}
