//! Compilers for hardware that is not present, if `ci/compilers` has built a folder of them. No test depends
//! on time.

use serde_json::Value;

use crate::common::{Ran, vk_litmus};

/// One chip per vendor that Debian packages for this machine, in the newest Mesa of the folder.
const CHIPS: [&str; 6] =
    ["radv:navi31@26", "nvk:ga102@26", "anv:bmg@26", "anv:skl@26", "turnip:a750@26", "honeykrisp:m1@26"];

/// Returns true if the folder exists.
fn has_compilers() -> bool {
    let there = std::env::var_os("VK_LITMUS_COMPILERS").is_some_and(|folder| !folder.is_empty());
    if !there {
        println!(
            "1 skipped: VK_LITMUS_COMPILERS names no folder of ci/compilers: no compilers of six vendors"
        );
    }
    there
}

fn codegen(arguments: &str) -> Ran {
    Ran::run(vk_litmus(["codegen"]).args(arguments.split(' ')))
}

/// The text of each vendor is attributed to the accesses that it implements.
#[test]
fn text_of_every_vendor_is_attributed_to_accesses() {
    if !has_compilers() {
        return;
    }
    let ran = codegen(&format!(
        "mp/MP+rel-acq rmw/RMW+xchg-xchg --device {chips} --form split --emit asm --format json",
        chips = CHIPS.join(",")
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = ran.json_lines();
    assert_eq!(found.len(), 2 * CHIPS.len());
    for line in found {
        assert_eq!(line["verdict"], "compiles", "{line}");
        for kernel in line["kernels"].as_array().unwrap() {
            assert_eq!(kernel["not_disassembled"], Value::Null, "{line}");
            let code = kernel["code"].as_array().unwrap();
            let mut sources: Vec<&str> = code.iter().filter_map(|line| line["source"].as_str()).collect();
            sources.sort_unstable();
            let thread = kernel["kernel"].as_str().unwrap();
            let is_access =
                |source: &&&str| source.starts_with(&format!("{thread}.")) && !source.contains("results");
            let expected = if line["id"] == "mp/MP+rel-acq" { 2 } else { 1 };
            assert_eq!(sources.iter().filter(is_access).count(), expected, "{line}");
            assert!(sources.iter().any(|source| source.contains("results")), "{line}");
        }
    }
}

/// F2: driver-independent code loses the acquire of a consumer if references do not alias, and has it if they
/// may.
#[test]
fn a_lost_acquire_is_found_on_every_affected_driver() {
    if !has_compilers() {
        return;
    }
    let verdicts = |device: &str, form: &str| -> (String, String) {
        let ran =
            codegen(&format!("mp/MP+rel-acq --device {device} --form {form} --emit order --format json"));
        let lines = ran.json_lines();
        let kernels = lines[0]["kernels"].as_array().unwrap();
        let orders = |kernel: &Value| kernel["orders"].as_array().cloned().unwrap_or_default();
        let order_of = |order: &str| {
            let found = kernels.iter().flat_map(orders).find(|one| one["order"] == order);
            found.unwrap_or_else(|| panic!("{device} {form} {order}: {lines:?}"))
        };
        let word = |value: &Value| value["verdict"].as_str().unwrap().to_owned();
        assert_eq!(word(&order_of("release")["code"]), "kept", "{device} {form}");
        let acquire = order_of("acquire");
        let code = match word(&acquire["code"]).as_str() {
            "lost" => 1,
            "unknown" => 3,
            _ => 0,
        };
        assert_eq!(ran.code, code, "{device} {form}");
        (word(&acquire["code"]), word(&acquire["nir"]))
    };
    for device in CHIPS {
        assert_eq!(verdicts(device, "split"), ("kept".to_owned(), "kept".to_owned()), "{device}");
    }
    // In NIR, the load is marked `reorderable` although it is atomic, on every driver but the last. The
    // effects differ. ANV moves both loads after the fence before its last NIR.
    let restricted = [
        ("radv:navi31@26", "lost", "weakened"),
        ("nvk:ga102@26", "unknown", "weakened"),
        ("anv:bmg@26", "lost", "lost"),
        ("anv:skl@26", "lost", "lost"),
        ("turnip:a750@26", "unknown", "weakened"),
        ("honeykrisp:m1@26", "kept", "kept"),
    ];
    for (device, code, nir) in restricted {
        assert_eq!(verdicts(device, "split.restrict"), (code.to_owned(), nir.to_owned()), "{device}");
    }
}

/// The page of orderings starts with the order that a newer driver changes (F8), and escapes text once.
#[test]
fn the_page_lists_changes_of_a_newer_driver() {
    if !has_compilers() {
        return;
    }
    let ran = codegen(
        "storage/MP+fence-fence.sc2-payload --device radv:navi31@25,radv:navi31@26 --form split --emit order --format html",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("<td>kept → weakened</td>").count(), 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("acquire at dv: ld.atom.sc0 → ld.vis.sc2"), "{}", ran.stdout);
}

/// A relaxation without an effect has no difference, although the driver prints a hash of each shader.
#[test]
fn differences_between_runs_are_ignored() {
    if !has_compilers() {
        return;
    }
    let ran = codegen("mp/MP+rel-acq --device turnip:a750@26 --form split --emit diff --format json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = ran.json_lines();
    let verdict = |step: &str| {
        let line =
            found.iter().find(|line| line["step"] == step).unwrap_or_else(|| panic!("{step}: {found:?}"));
        line["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("P0.1: scope qf"), "no-effect");
    assert_eq!(verdict("P1.0: relaxed"), "differs");
}

/// If a compiler accepts split barriers in Intel's form, they are compiled in that form although the driver
/// lacks the feature, and the output notes it. Other compilers do not get them.
#[test]
fn split_barriers_are_compiled_in_intels_form() {
    if !has_compilers() {
        return;
    }
    let ran = codegen(
        "split/MP+split --device radv:navi31@25,radv:navi31@26,nvk:ga102@26,anv:bmg@26,turnip:a750@26,honeykrisp:m1@26 --form merged --emit asm --format json",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = ran.json_lines();
    assert_eq!(
        (lines[0]["verdict"].as_str(), lines[0]["reason"].as_str()),
        (Some("skipped"), Some("shaderSplitBarrier"))
    );
    for line in &lines[1..] {
        assert_eq!(line["verdict"], "compiles", "{line}");
        let rewritten_form = line["kernels"][0]["rewritten_form"].as_str().unwrap();
        assert!(
            rewritten_form.contains("SPV_INTEL_split_barrier")
                && rewritten_form.contains("lacks shaderSplitBarrier"),
            "{rewritten_form}"
        );
    }
}

/// The error for an unknown chip lists the known ones.
#[test]
fn an_unknown_chip_is_refused() {
    if !has_compilers() {
        return;
    }
    for (device, known) in
        [("nvk:riva", "ga102"), ("anv:i740", "bmg"), ("turnip:a1", "a750"), ("honeykrisp:z80", "m1")]
    {
        let ran = codegen(&format!("mp/MP+rel-acq --device {device}"));
        let text = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(ran.code, 3, "{text}");
        assert!(
            text.contains(&format!("no compile-only device `{device}`")) && text.contains(known),
            "{text}"
        );
        assert!(text.contains("another Mesa may know more: --mesa, VK_LITMUS_COMPILERS and"), "{text}");
    }
    // A Mesa that is too new for a chip, and a version that does not exist.
    for (device, expected) in [
        ("radv:navi12@26", "/mesa-25.0.7/usr/share/vulkan/icd.d/radeon_icd.json is of Mesa 25.0.7"),
        ("radv:navi12@26", "/mesa-26.2.6/usr/share/vulkan/icd.d/radeon_icd.json knows pitcairn, "),
        ("turnip:a750@25", "/mesa-26.2.6/usr/share/vulkan/icd.d/freedreno_icd.json is of Mesa 26.2.6"),
    ] {
        let ran = codegen(&format!("mp/MP+rel-acq --device {device}"));
        // Paths are wrapped.
        let text: String = ran.stderr.chars().filter(|c| !c.is_whitespace() && *c != '│').collect();
        assert_eq!(ran.code, 3, "{text}");
        for expected in [expected, "another Mesa may have it: --mesa, VK_LITMUS_COMPILERS and"] {
            let expected: String = expected.chars().filter(|c| !c.is_whitespace()).collect();
            assert!(text.contains(&expected), "{device}: {text}");
        }
    }
}
