//! Machine code of compile-only devices: Mesa's RADV, if installed. No test depends on time.

use std::path::Path;

use crate::common::{Ran, assert_valid, vk_litmus};
use serde_json::Value;

/// One family of each generation that every Mesa version can disassemble.
const FAMILIES: [&str; 5] = ["polaris10", "vega10", "navi10", "navi21", "navi31"];

/// Returns true if RADV is installed; otherwise prints a counted skip.
pub fn has_radv() -> bool {
    let there = Path::new("/usr/share/vulkan/icd.d").read_dir().is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("radeon_icd"))
    });
    if !there {
        println!("1 skipped: RADV is not installed: no compile-only device");
    }
    there
}

/// Names of the vendors.
const VENDORS: [&str; 8] = ["radv", "nvk", "anv", "hasvk", "turnip", "honeykrisp", "panvk", "v3dv"];

fn codegen(arguments: &[&str]) -> Ran {
    Ran::run(vk_litmus(["codegen"]).args(arguments))
}

/// Runs a command that must succeed and returns its lines.
#[track_caller]
fn lines(arguments: &[&str]) -> Vec<Value> {
    let ran = codegen(&[arguments, &["--format", "json"]].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.json_lines()
}

fn schema(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/schema").join(name)
}

fn devices(families: &[&str]) -> String {
    families.iter().map(|family| format!("radv:{family}")).collect::<Vec<_>>().join(",")
}

/// Returns the code of a kernel, without labels.
fn code<'a>(line: &'a Value, form: &str, kernel: &str) -> Vec<&'a Value> {
    let kernels = line["kernels"].as_array().unwrap();
    let found = kernels.iter().find(|one| one["form"] == form && one["kernel"] == kernel).unwrap();
    found["code"].as_array().unwrap().iter().collect()
}

#[test]
fn the_quick_suite_compiles_for_every_generation() {
    if !has_radv() {
        return;
    }
    // The others compile a few tests in `committed_machine_code_is_current`.
    let families = match std::env::var_os("VK_LITMUS_SOAK") {
        Some(_) => &FAMILIES[..],
        None => &["polaris10", "navi31"],
    };
    let found = lines(&["--suite", "quick", "--device", &devices(families)]);
    let schema = schema("codegen.schema.json");
    assert_valid(&schema, &found[0]);
    let (compiled, left): (Vec<&Value>, Vec<&Value>) =
        found.iter().partition(|line| line["verdict"] == "compiles");
    for line in &compiled {
        let kernels = line["kernels"].as_array().unwrap();
        // Every kernel was disassembled: it has at least the store of its results.
        assert!(kernels.iter().all(|kernel| kernel["instructions"].as_u64().unwrap() > 2), "{line:#}");
    }
    // Tests with host threads, several queue families or a feature that these drivers lack are skipped by
    // name.
    for line in &left {
        assert_eq!(line["verdict"], "skipped", "{line:#}");
        assert!(line["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{line:#}");
    }
    let tests = found.len() / families.len();
    assert!(tests > 60 && compiled.len() > 9 * left.len(), "{tests} tests, {} skipped", left.len());
    assert_eq!(tests * families.len(), found.len());
    // Two threads, each in a workgroup: one kernel for both, and one for each.
    let mp = found.iter().find(|line| line["id"] == "mp/MP+rel-acq").unwrap();
    let kernels = mp["kernels"].as_array().unwrap();
    let verdicts: Vec<(&str, &str, &str)> = kernels
        .iter()
        .map(|kernel| {
            let word = |key: &str| kernel[key].as_str().unwrap();
            (word("form"), word("kernel"), word("role"))
        })
        .collect();
    let expected = [
        ("merged", "P0,P1", "both"),
        ("split", "P0", "producer"),
        ("split", "P1", "consumer"),
        ("split.restrict", "P0", "producer"),
        ("split.restrict", "P1", "consumer"),
        ("expression.restrict", "P0", "producer"),
        ("expression.restrict", "P1", "consumer"),
        ("vertex", "P0", "producer"),
        ("vertex", "P1", "consumer"),
        ("vertex.restrict", "P0", "producer"),
        ("vertex.restrict", "P1", "consumer"),
        ("fragment", "P0", "producer"),
        ("fragment", "P1", "consumer"),
        ("fragment.restrict", "P0", "producer"),
        ("fragment.restrict", "P1", "consumer"),
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn instructions_are_attributed_to_accesses() {
    if !has_radv() {
        return;
    }
    let found = lines(&["mp/MP+rel-acq", "--device", "radv:navi21", "--emit", "asm"]);
    let sources = |form: &str, kernel: &str| -> Vec<(String, String)> {
        code(&found[0], form, kernel)
            .iter()
            .filter_map(|line| Some((line["source"].as_str()?.to_owned(), line["text"].as_str()?.to_owned())))
            .collect()
    };
    for (form, producer, consumer) in [("merged", "P0,P1", "P0,P1"), ("split", "P0", "P1")] {
        let producer = sources(form, producer);
        let code_of = |from: &[(String, String)], what: &str| {
            from.iter().find(|(source, _)| source.starts_with(what)).map(|(_, text)| text.clone()).unwrap()
        };
        assert!(code_of(&producer, "P0.0: st.atom.dv.sc0 x, 1").starts_with("buffer_store"), "{producer:?}");
        let flag = code_of(&producer, "P0.1: st.atom.rel.dv.sc0.semsc0 f, 1");
        assert!(flag.contains("offset:256"), "{flag}");
        let consumer = sources(form, consumer);
        let flag = code_of(&consumer, "P1.0: ld.atom.acq.dv.sc0.semsc0 r0, f");
        assert!(flag.contains("_load") && flag.contains("offset:256"), "{flag}");
        assert!(code_of(&consumer, "P1.1: ld.atom.dv.sc0 r1, x").contains("_load"), "{consumer:?}");
        assert!(consumer.iter().any(|(source, _)| source == "P1: results"), "{consumer:?}");
    }
    // The text form has the same contents.
    let text = codegen(&["mp/MP+rel-acq", "--device", "radv:navi21", "--emit", "asm", "--form", "split"]);
    assert!(
        text.stdout.contains("P0.1: st.atom.rel.dv.sc0.semsc0 f, 1 |   buffer_store_dword"),
        "{}",
        text.stdout
    );
}

#[test]
fn intermediate_forms_are_shown() {
    if !has_radv() {
        return;
    }
    let found = lines(&["mp/MP+rel-acq", "--device", "radv:navi21", "--emit", "ir", "--form", "merged"]);
    let forms = found[0]["kernels"][0]["forms"].as_array().unwrap();
    let names: Vec<&str> = forms.iter().map(|form| form["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 3, "{names:?}");
    assert!(names[0].starts_with("NIR"), "{names:?}");
    assert_eq!(*names.last().unwrap(), "Assembly");
}

/// If the model needs a release or an acquire, its relaxation changes the code. The exception is a finding
/// (docs/findings).
#[test]
fn relaxations_change_the_code() {
    if !has_radv() {
        return;
    }
    let found =
        lines(&["mp/MP+rel-acq", "--device", &devices(&["vega10", "navi21", "navi31"]), "--emit", "diff"]);
    assert_valid(&schema("codegen-diff.schema.json"), &found[0]);
    let verdict = |device: &str, form: &str, step: &str| -> String {
        let is = |line: &&Value| {
            line["device"].as_str().unwrap().starts_with(device)
                && line["form"] == form
                && line["step"] == step
        };
        let line = found.iter().find(is).unwrap_or_else(|| panic!("{device} {form} {step}"));
        assert_eq!(line["needed"], true, "{line}");
        line["verdict"].as_str().unwrap().to_owned()
    };
    for device in ["radv:vega10", "radv:navi21", "radv:navi31"] {
        for form in ["merged", "split"] {
            assert_eq!(verdict(device, form, "P0.1: relaxed"), "differs", "{device} {form}");
            assert_eq!(verdict(device, form, "P1.0: relaxed"), "differs", "{device} {form}");
        }
        // A shader that only reads loses its acquire if its references are not declared to alias.
        assert_eq!(verdict(device, "split.restrict", "P0.1: relaxed"), "differs", "{device}");
        assert_eq!(verdict(device, "split.restrict", "P1.0: relaxed"), "no-effect", "{device}");
    }
    // The output distinguishes a scope that is narrower than needed from one that is wider.
    let needless = found.iter().find(|line| line["step"] == "P0.1: scope qf").unwrap();
    assert_eq!(needless["needed"], false);
}

#[test]
fn null_devices_execute_nothing() {
    if !has_radv() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 4] = [
        &["run", "mp/MP+rel-acq", "sb/SB+rlx-rlx", "--instances", "1000", "--format", "json"],
        &["run", "--suite", "progress", "--format", "json"],
        &["bench", "--format", "json"],
        &["tune", "--out", "stress.toml"],
    ];
    for arguments in commands {
        let mut command = vk_litmus(arguments.iter().copied());
        let ran = Ran::run(command.args(["--device", "radv:navi21"]).current_dir(folder.path()));
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{arguments:?}: {}", ran.stderr);
        let text = ran.messages();
        assert!(text.contains("only compiles"), "{text}");
        // An unknown device writes no file.
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn compile_only_devices_are_listed_and_never_the_default() {
    if !has_radv() {
        return;
    }
    let listed = Ran::run(&mut vk_litmus(["devices", "--compile-only", "--format", "json"]));
    let devices: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let compile_only: Vec<&Value> =
        devices.iter().filter(|device| device["identity"]["kind"] == "compile-only").collect();
    assert!(compile_only.len() > 20, "{}", listed.stdout);
    for device in &compile_only {
        assert_eq!(device["capabilities"]["executes"], false);
        let name = device["identity"]["name"].as_str().unwrap();
        assert!(VENDORS.iter().any(|vendor| name.starts_with(&format!("{vendor}:"))), "{name}");
    }
    let indices: Vec<u64> = devices.iter().map(|device| device["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, (0..devices.len() as u64).collect::<Vec<_>>());
    assert_ne!(devices[0]["identity"]["kind"], "compile-only");
    // An index refers to the list of `devices`.
    let last = devices.last().unwrap();
    let index = last["index"].to_string();
    let found = lines(&["mp/MP+rel-acq", "--device", &index, "--form", "merged"]);
    assert_eq!(found[0]["device"], last["identity"]["name"]);
}

#[test]
fn an_unknown_family_lists_the_known_ones() {
    if !has_radv() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for command in ["codegen", "run"] {
        let ran = Ran::run(
            vk_litmus([command, "mp/MP+rel-acq", "--device", "radv:bogus"]).current_dir(folder.path()),
        );
        assert_eq!(ran.code, 3, "{command}: {ran:?}");
        let text = ran.messages();
        assert!(text.contains("no compile-only device `radv:bogus`"), "{text}");
        assert!(text.contains("ended with signal: 6"), "{text}");
        assert!(text.contains("vega10") && text.contains("navi21"), "{text}");
    }
    let ran =
        codegen(&["mp/MP+rel-acq", "--device", "radv:navi21", "--mesa", folder.path().to_str().unwrap()]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// One test on one device prints its code; several print which kernels compile.
#[test]
fn a_single_test_prints_its_code() {
    if !has_radv() {
        return;
    }
    let single = codegen(&["mp/MP+rel-acq", "--device", "radv:navi21"]);
    assert!(single.code == 0 && single.stdout.contains("s_waitcnt"), "{single:?}");
    let several = codegen(&["mp/MP+rel-acq", "mp/MP+rlx-rlx", "--device", "radv:navi21"]);
    assert!(several.code == 0 && !several.stdout.contains("s_waitcnt"), "{several:?}");
}

#[test]
fn a_driver_without_the_extension_is_skipped_by_its_name() {
    for driver in crate::common::software_drivers() {
        let ran = codegen(&["mp/MP+rel-acq", "--device", driver, "--format", "json"]);
        assert_eq!(ran.code, 3, "{driver}: {}", ran.stderr);
        let line = &ran.json_lines()[0];
        assert_eq!(line["verdict"], "skipped", "{line}");
        assert_eq!(line["reason"], "VK_KHR_pipeline_executable_properties", "{line}");
        let text = codegen(&["mp/MP+rel-acq", "--device", driver]);
        assert!(text.stdout.contains("VK_KHR_pipeline_executable_properties"), "{}", text.stdout);
    }
}

#[test]
fn the_simulated_gpu_has_no_machine_code() {
    let ran = codegen(&["mp/MP+rel-acq", "--device", "sim"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// A compiler crashes on modules with a certain instruction. The crash is reported, attributed to the kernels
/// with that instruction, and reduced to it; the other kernels compile.
#[test]
fn crashes_are_captured_attributed_and_reduced() {
    if !has_radv() {
        return;
    }
    let tests = ["rmw/RMW+xchg-xchg", "isa2/ISA2+rel-acqrel-acq", "mp/MP+rel-rlx", "--device", "radv:navi21"];
    let more = ["--misbehave", "crash:OpAtomicExchange", "--format", "json", "--form", "merged"];
    let ran = codegen(&[&tests[..], &more[..]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let found = ran.json_lines();
    let line_of = |id: &str| found.iter().find(|line| line["id"] == id).unwrap();
    assert_eq!(line_of("mp/MP+rel-rlx")["verdict"], "compiles");
    assert_eq!(line_of("isa2/ISA2+rel-acqrel-acq")["verdict"], "compiles");
    let crashed = line_of("rmw/RMW+xchg-xchg");
    assert_eq!(crashed["verdict"], "crashes");
    assert!(crashed["reason"].as_str().unwrap().starts_with("the worker ended with signal 6"), "{crashed:#}");
    assert_valid(&schema("codegen.schema.json"), crashed);
    let reduced = crashed["reduced"].as_str().unwrap();
    assert_eq!(reduced.lines().filter(|line| line.contains("rmw.")).count(), 1, "{reduced}");
    assert!(!reduced.contains("st.") && !reduced.contains(" ld."), "{reduced}");
    assert!(!reduced.contains('|'), "one thread: {reduced}");
}

/// A compiler that hangs is killed, and the report names the kernel on which it hung.
#[test]
fn hanging_compilers_are_killed_and_reported() {
    if !has_radv() {
        return;
    }
    let arguments = ["rmw/RMW+xchg-xchg", "--device", "radv:navi21", "--form", "merged", "--format", "json"];
    let ran =
        codegen(&[&arguments[..], &["--misbehave", "hang:OpAtomicExchange", "--timeout", "1s"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let line = &ran.json_lines()[0];
    assert_eq!(line["verdict"], "crashes");
    assert!(line["reason"].as_str().unwrap().starts_with("no answer after"), "{line:#}");
}

/// The explorer finds known faults: a workgroup release that is not cumulative on GFX8 and GFX9 but is on
/// RDNA, and consumers without their acquire on all chips (docs/findings).
#[test]
fn known_forbidden_outcomes_are_reachable() {
    if !has_radv() {
        return;
    }
    let families = ["polaris10", "vega10", "navi21", "navi31"];
    let tests = ["barrier/ISA2+cbar-rel-acq.atomic", "mp/MP+rel-acq"];
    let arguments = ["--device", &devices(&families), "--explore", "--format", "json"];
    let ran = codegen(&[&tests[..], &arguments[..]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let found = ran.json_lines();
    assert_valid(&schema("codegen-explore.schema.json"), &found[0]);
    let verdict = |id: &str, family: &str, form: &str| -> &Value {
        let is = |line: &&Value| {
            line["id"] == id
                && line["device"].as_str().unwrap().starts_with(&format!("radv:{family}"))
                && line["form"] == form
                && line["profile"] == "documented"
        };
        found.iter().find(is).unwrap_or_else(|| panic!("{id} {family} {form}"))
    };
    for (family, cumulative) in [("polaris10", false), ("vega10", false), ("navi21", true), ("navi31", true)]
    {
        let line = verdict(tests[0], family, "merged");
        let expected = if cumulative { "unreachable" } else { "reachable" };
        assert_eq!(line["verdict"], expected, "{line:#}");
        if !cumulative {
            let steps = line["witness"]["steps"].as_array().unwrap();
            assert!(steps.iter().any(|step| step["code"] == "s_barrier"), "{line:#}");
            assert!(!line["assumptions"].as_array().unwrap().is_empty());
        }
    }
    for family in families {
        assert_eq!(verdict(tests[1], family, "merged")["verdict"], "unreachable", "{family}");
        assert_eq!(verdict(tests[1], family, "split")["verdict"], "unreachable", "{family}");
        assert_eq!(verdict(tests[1], family, "split.restrict")["verdict"], "reachable", "{family}");
    }
}

#[test]
fn a_baseline_is_written_compared_and_blessed() {
    if !has_radv() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let baseline = folder.path().join("code");
    let path = baseline.to_str().unwrap();
    let run_baseline = |tests: &[&str], more: &[&str]| {
        let ran = codegen(&[tests, &["--device", "radv:navi21", "--baseline", path], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    };
    assert!(run_baseline(&["mp/MP+rel-acq"], &[]).contains("5 kernels written"));
    let file = baseline.join("radv-navi21.txt");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("== mp/MP+rel-acq split P0\ns_waitcnt lgkmcnt(0)\nbuffer_store_dword"), "{text}");
    assert!(run_baseline(&["mp/MP+rel-acq"], &[]).contains("0 of 5 kernels differ"));
    // The output of a hypothetical compiler that omits one wait.
    std::fs::write(&file, text.replacen("s_waitcnt_vscnt null, 0x0\n", "", 1)).unwrap();
    let output = run_baseline(&["mp/MP+rel-acq"], &[]);
    assert!(output.contains("changed: mp/MP+rel-acq") && output.contains("+ s_waitcnt_vscnt"), "{output}");
    run_baseline(&["mp/MP+rel-acq"], &["--bless"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    // This file is not a baseline.
    std::fs::write(&file, "s_endpgm\n").unwrap();
    let ran = codegen(&["mp/MP+rel-acq", "--device", "radv:navi21", "--baseline", path]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// The memory operations of a few tests, compiled by the Mesa version of the committed files.
#[test]
fn committed_machine_code_is_current() {
    if !has_radv() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/codegen");
    let tests = [
        "mp/MP+rel-acq",
        "isa2/ISA2+rel-acqrel-acq.wg-dv",
        "barrier/ISA2+cbar-rel-acq.atomic",
        "rmw/RMW+addadd-addadd",
        "storage/MP+rel-acq.address",
        "classes/MP+cbar.sc1",
    ];
    let installed = lines(&[tests[0], "--device", "radv:vega10", "--form", "merged"]);
    let driver = installed[0]["driver"].as_str().unwrap();
    let made_by = std::fs::read_to_string(folder.join("radv-vega10.txt")).unwrap();
    let made_by = made_by.lines().nth(1).unwrap().trim_start_matches("# ").to_owned();
    if made_by != driver {
        println!("1 skipped: committed machine code is of {made_by}, and this is {driver}");
        return;
    }
    let folder = folder.to_str().unwrap();
    let ran = codegen(&[&tests[..], &["--device", &devices(&FAMILIES), "--baseline", folder]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout.lines().filter(|line| line.contains(": 0 of ")).count(),
        FAMILIES.len(),
        "{}",
        ran.stdout
    );
}

/// A Mesa installation in a folder; its libraries may be newer than those of this system.
#[test]
fn a_mesa_in_a_folder_is_found() {
    let Some(folder) = std::env::var_os("VK_LITMUS_MESA_FOLDER") else {
        println!("1 skipped: VK_LITMUS_MESA_FOLDER names no folder with a newer Mesa");
        return;
    };
    let folder = folder.to_str().unwrap();
    let found = lines(&["mp/MP+rel-acq", "--device", "radv:gfx1201", "--mesa", folder, "--emit", "asm"]);
    assert_eq!(found[0]["verdict"], "compiles");
    let text = |line: &&Value| line["text"].as_str().unwrap().to_owned();
    let store: Vec<String> = code(&found[0], "split", "P0").iter().map(text).collect();
    assert!(store.iter().any(|line| line.contains("scope:SCOPE_DEV")), "{store:?}");
}

#[test]
fn compile_emits_machine_code() {
    if !has_radv() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("k.s");
    let arguments = ["compile", "mp/MP+rel-acq", "--device", "radv:navi21", "--emit", "isa", "--out"];
    let ran = Ran::run(vk_litmus(arguments).arg(&out));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.contains("buffer_store_dword") && text.contains("s_endpgm"), "{text}");
    let none = Ran::run(&mut vk_litmus(["compile", "mp/MP+rel-acq", "--emit", "isa"]));
    assert_eq!(none.code, 2, "{none:?}");
}

/// A shader that only reads loses an acquire: the second load of `data` returns the value of the first.
const LEASE: &str = "#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 64) in;
layout(binding = 0) restrict readonly devicecoherent buffer Data { uint data; };
layout(binding = 1) buffer Flag { uint flag; };
layout(binding = 2) restrict writeonly buffer Out { uint o[]; };
shared uint tile[64];
void main() {
    uint i = gl_LocalInvocationIndex;
    uint before = data;
    uint f = atomicLoad(flag, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
    uint after = data;
    o[i] = before + 2 * f + 4 * after;
}
";

#[test]
fn shaders_have_code_next_to_their_lines_and_a_table_of_orders() {
    if !has_radv() || !crate::common::installed("glslangValidator") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.comp");
    std::fs::write(&path, LEASE).unwrap();
    let file = path.to_str().unwrap();
    let ran = codegen(&[file, "--device", "radv:navi21"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let has_line =
        |parts: [&str; 2]| ran.stdout.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    for parts in [
        ["11: load of Data: uint before = data;", "|   s_buffer_load_dword"],
        ["14: store to Out: o[i] = before", "|   buffer_store_dword"],
        ["lost (merged) acquire at dv: 12: load of Flag", "-> 13: load of Data: uint after = data;"],
    ] {
        assert!(has_line(parts), "{parts:?}: {}", ran.stdout);
    }
    let list = codegen(&[file, "--device", "radv:navi21,radv:vega10", "--format", "json"]);
    let lines = list.json_lines();
    assert_eq!((list.code, lines.len()), (1, 2), "{}", list.stderr);
    lines.iter().for_each(|line| assert_valid(&schema("codegen.schema.json"), line));
    // The wait of a control barrier in an ordinary kernel is found.
    let kept = LEASE
        .replace("uint after = data;", "tile[i] = f; barrier();")
        .replace("4 * after", "tile[255 - i]")
        .replace("local_size_x = 64", "local_size_x = 256")
        .replace("tile[64]", "tile[256]");
    std::fs::write(&path, kept).unwrap();
    let ran = codegen(&[file, "--device", "radv:navi21", "--emit", "order"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("kept      release at wg: 13: store to tile"), "{}", ran.stdout);
    for (arguments, words) in [
        (vec![file, "mp/MP+rel-acq"], "expected shaders alone, or tests alone"),
        (vec![file, "--explore"], "--form and --emit diff are about tests"),
    ] {
        let ran = codegen(&[&arguments[..], &["--device", "radv:navi21"]].concat());
        assert!(ran.code == 2 && ran.words().contains(words), "{ran:?}");
    }
}
