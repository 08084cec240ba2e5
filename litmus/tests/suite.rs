//! Selections of tests by globs and variants.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use litmus::Suite;
use litmus::suite::{MAX_VARIANTS, SuiteError, expand_braces};

const IDS: [&str; 4] = ["mp/MP+rel-acq", "mp/MP+rlx-rlx", "sb/SB+rlx-rlx", "hsa/mp/MP"];

fn select(text: &str) -> Vec<String> {
    Suite::parse(text, "test").unwrap().select(IDS).unwrap()
}

#[test]
fn later_lines_add_and_remove_tests() {
    assert_eq!(select("**"), IDS);
    assert_eq!(select("mp/* # two of them\n\n# nothing\n"), IDS[..2]);
    assert_eq!(select("**\n!*/*+rlx-rlx\nsb/*"), ["mp/MP+rel-acq", "sb/SB+rlx-rlx", "hsa/mp/MP"]);
    assert_eq!(select(" ! **\n{sb,mp}/SB+rlx-rlx"), ["sb/SB+rlx-rlx"]);
    assert_eq!(select(""), [""; 0]);
}

#[test]
fn a_variant_is_a_separate_test() {
    let selected = select("mp/*\n**@split\n!hsa/**@split\nmp/MP+rel-acq@glsl450.unrolled\n!mp/MP+rlx-rlx");
    let chosen = [
        "mp/MP+rel-acq",
        "mp/MP+rel-acq@split",
        "mp/MP+rel-acq@glsl450.unrolled",
        "mp/MP+rlx-rlx@split",
        "sb/SB+rlx-rlx@split",
    ];
    assert_eq!(selected, chosen);
}

#[test]
fn braces_in_a_variant_select_several() {
    let selected = select("sb/*@size-{1,33}.{phi,copy}\n!sb/*@size-1.copy");
    assert_eq!(
        selected,
        ["sb/SB+rlx-rlx@size-1.phi", "sb/SB+rlx-rlx@size-33.phi", "sb/SB+rlx-rlx@size-33.copy"]
    );
    assert_eq!(expand_braces("a}b{c").unwrap(), ["a}b{c"]);
}

#[test]
fn variants_beyond_the_limit_are_a_mistake() {
    let thousand = "{0,1,2,3,4,5,6,7,8,9}".repeat(3);
    assert_eq!(expand_braces(&thousand).unwrap().len(), MAX_VARIANTS);
    assert_eq!(expand_braces(&format!("{thousand}{{a,b}}")), None);
    let errors = Suite::parse(&format!("mp/*\n  mp/*@{}", "{a,b}".repeat(290)), "test").unwrap_err();
    assert!(
        matches!(errors.errors(), [SuiteError::TooManyVariants { span }] if (span.line, span.column) == (2, 3))
    );
}

#[test]
fn mistakes_are_reported_with_lines() {
    let errors = Suite::parse("mp/*\n  sb/[ab\n{x\n", "test").unwrap_err();
    let places: Vec<u32> = errors.errors().iter().map(|error| error.span().line).collect();
    assert_eq!(places, [2, 3]);
    // Too large to compile.
    let errors = Suite::parse(&format!("mp/*\n{}\n", "?*".repeat(60_000)), "test").unwrap_err();
    assert!(matches!(errors.errors(), [SuiteError::MalformedGlob { span, .. }] if span.line == 2));
    let errors = Suite::parse("mp/*\nsb/NONE\n!lb/*", "test").unwrap().select(IDS).unwrap_err();
    let messages: Vec<String> = errors.errors().iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["no test matches `sb/NONE`", "no test matches `lb/*`"]);
}
