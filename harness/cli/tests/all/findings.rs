//! The commands in each page of `docs/findings` reproduce the finding.

use std::path::PathBuf;
use std::process::Command;

use crate::codegen::has_radv;
use crate::common::{Ran, binary};
use crate::docs::root;

/// Returns the commands of a finding: its indented lines. The type has their number, so that an omitted one
/// is an error.
fn commands<const N: usize>(name: &str) -> [String; N] {
    let found = commands_of(&std::fs::read_to_string(root().join("docs/findings").join(name)).unwrap());
    assert_eq!(found.len(), N, "commands of {name}: {found:#?}");
    found.try_into().unwrap()
}

pub(crate) fn commands_of(page: &str) -> Vec<String> {
    // Fenced blocks are output, or are checked by the module `figures`.
    let outside = page.split("```").step_by(2).flat_map(str::lines);
    let indented = outside.filter_map(|line| line.strip_prefix("    "));
    indented.filter(|line| !line.starts_with(' ')).map(str::to_owned).collect()
}

/// Returns the folder of `ci/compilers`; prints a skip if it or the path in it is missing.
fn compilers(path: &str, otherwise: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("VK_LITMUS_COMPILERS").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.filter(|folder| folder.join(path).exists());
    if folder.is_none() {
        println!("1 skipped: VK_LITMUS_COMPILERS names no folder with {path}: {otherwise}");
    }
    folder
}

/// Counts the lines for orders of an acquire with a verdict.
fn acquires(ran: &Ran, verdict: &str) -> usize {
    let is_acquire = |line: &&str| line.trim_start().starts_with(verdict) && line.contains(" acquire at dv");
    ran.stdout.lines().filter(is_acquire).count()
}

/// The scripts of findings are those that `repro` writes for the tests that they name.
#[test]
fn amber_scripts_are_current() {
    let folder = tempfile::tempdir().unwrap();
    let mut scripts = 0;
    for entry in root().join("docs/findings/amber").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "amber") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let command = text.lines().find_map(|line| line.strip_prefix("# Written by `vk-litmus ")).unwrap();
        let out = folder.path().join("x.amber");
        let words = command.trim_end_matches("`.").split(' ');
        let ran = Ran::run(Command::new(binary()).args(words).arg("--out").arg(&out));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(text, std::fs::read_to_string(out).unwrap(), "{}", path.display());
        scripts += 1;
    }
    assert!(scripts >= 5, "{scripts}");
}

/// Every page with commands has a test that runs them.
#[test]
fn every_page_with_commands_is_run() {
    let source = [include_str!("findings.rs"), include_str!("steps/findings.toml")].concat();
    let mut pages = 0;
    for entry in root().join("docs/findings").read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".md") && !commands_of(&std::fs::read_to_string(&path).unwrap()).is_empty() {
            assert!(
                source.contains(&format!("\"{name}\"")),
                "docs/findings/{name} has commands that no test runs"
            );
            pages += 1;
        }
    }
    assert!(pages > 9, "{pages}");
}

fn run(command: &str, replaced: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(binary(), folder.path().join("vk-litmus")).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let command = replaced.iter().fold(command.to_owned(), |text, (from, to)| text.replace(from, to));
    Ran::run(Command::new("bash").args(["-c", &command]).current_dir(root()).env("PATH", path))
}

fn has(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        println!("1 skipped: {tool} is not installed");
    }
    there
}

/// The commands of F2.
struct F2 {
    code: String,
    explored: String,
    merged: String,
    vendors: String,
    stages: String,
    /// Commands for the builds of `ci/mesa-patch`.
    patched: [String; 6],
}

fn f2() -> F2 {
    let [code, explored, merged, vendors, stages, patched @ ..] = commands::<11>("F2-consumer-acquire.md");
    F2 { code, explored, merged, vendors, stages, patched }
}

#[test]
fn f2_a_consumer_loses_its_acquire() {
    if !has_radv() {
        return;
    }
    let code = run(&f2().code, &[]);
    assert_eq!(code.code, 0, "{code:?}");
    // One of the two forms waits between the loads.
    let consumer = |form: &str| {
        let heading = format!(", {form}, P1 (consumer)");
        let text = code.stdout.split_once(&heading).unwrap().1;
        let text = text.split("\n\n").next().unwrap().to_owned();
        let at = |what: &str| text.find(what).unwrap();
        let between = text.get(at("P1.0:")..at("P1.1:")).unwrap().to_owned();
        between.contains("s_waitcnt")
    };
    assert!(consumer("split") && !consumer("split.restrict"), "{}", code.stdout);
    let explored = run(&f2().explored, &[]);
    assert_eq!(explored.code, 1, "{explored:?}");
    assert_eq!(explored.stdout.matches("reachable mp/MP+rel-acq on radv:").count(), 4, "{}", explored.stdout);
}

#[test]
fn f2_two_reads_are_one_load() {
    if !has_radv() {
        return;
    }
    let ran = run(&f2().merged, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for form in ["split.restrict", "split.readonly"] {
        let consumer = ran.stdout.split_once(&format!(", {form}, P0 (both)")).unwrap().1;
        let consumer = consumer.split("\n\n").next().unwrap();
        // The second read, `P0.4`, has no instruction.
        assert!(consumer.contains("P0.0:") && !consumer.contains("P0.4:"), "{form}: {consumer}");
    }
    let orders = run(&f2().merged.replace("--emit asm", "--emit order"), &[]);
    assert_eq!(orders.code, 1, "{orders:?}");
    assert_eq!(orders.stdout.matches("lost (merged) acquire at dv: P0.2: ").count(), 2, "{orders:?}");
}

#[test]
fn f2_other_vendors_lose_it_too() {
    if compilers("mesa-26.2.6", "F2 is asked of RADV alone").is_none() {
        return;
    }
    let F2 { vendors, stages, .. } = f2();
    // RADV of both Mesas and ANV of the newer one; NVK and Turnip; ANV of the older one and Honeykrisp. Then
    // shaders that write no memory and whose references may alias: the same drivers in two stages, Honeykrisp
    // in one.
    for (command, found) in [(vendors, [8, 5, 3]), (stages, [6, 4, 1])] {
        let ran = run(&command, &[("VK_LITMUS_COMPILERS=DIR ", "")]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let verdicts = ["lost", "unknown", "kept"].map(|verdict| acquires(&ran, verdict));
        assert_eq!(verdicts, found, "{}", ran.stdout);
        assert_eq!(ran.stdout.matches("`reorderable` although it is `atomic`").count(), 7, "{}", ran.stdout);
    }
}

/// The patch for F2 fixes RADV in every form, and changes no kernel with all roles in one shader.
#[test]
fn f2_the_patch_restores_the_wait() {
    let Some(folder) = compilers("patched/F2/MADE", "F2's patch, which ci/mesa-patch builds, is not tried")
    else {
        return;
    };
    let baseline = tempfile::tempdir().unwrap();
    let replaced = [("DIR", folder.to_str().unwrap()), ("BASELINE", baseline.path().to_str().unwrap())];
    let [without, with, code, written, compared, orders] = &f2().patched;
    let verdicts = |ran: &Ran| ["kept", "lost"].map(|verdict| acquires(ran, verdict));
    // Three families; three of four forms lose the wait.
    let (without_patch, with) = (run(without, &replaced), run(with, &replaced));
    assert_eq!((without_patch.code, verdicts(&without_patch)), (1, [3, 9]), "{}", without_patch.stdout);
    assert_eq!((with.code, verdicts(&with)), (0, [12, 0]), "{}", with.stdout);
    let code = run(code, &replaced);
    let (_, between) = code.stdout.split_once("P1.0:").unwrap();
    assert!(between.split_once("P1.1:").unwrap().0.contains("s_waitcnt vmcnt(0)"), "{}", code.stdout);
    assert_eq!(run(written, &replaced).code, 0);
    let compared = run(compared, &replaced);
    let changed: Vec<&str> = compared.stdout.lines().filter(|line| line.contains(": changed: ")).collect();
    assert!(changed.len() > 3000, "{}", changed.len());
    let is_apart = |line: &&str| {
        let form = line.split(' ').nth(3).unwrap();
        form != "merged" && form != "split"
    };
    assert!(changed.iter().all(is_apart), "{changed:?}");
    assert!(!compared.stdout.contains(": new: ") && !compared.stdout.contains(": gone: "));
    // The remaining tests race.
    let orders = run(orders, &replaced);
    let mut test = "";
    for line in orders.stdout.lines() {
        match line.split_once(" on radv:") {
            Some((name, _)) => test = name,
            None if line.starts_with("  lost ") || line.starts_with("  weakened ") => {
                let racy =
                    ["av-only", "av-wg-far", "vis-wg-far"].map(|end| format!("avvis/MP+rel-acq.{end}"));
                assert!(racy.iter().any(|known| known == test), "{test}: {line}");
            }
            None => {}
        }
    }
}

/// The commands of F8.
struct F8 {
    code: String,
    orders: [String; 2],
    /// Commands for the builds of `ci/mesa-patch`, without and with the patch.
    explored: [String; 2],
    kernels: [String; 3],
}

fn f8() -> F8 {
    let [code, orders @ .., without, with, written, mended, caused] = commands::<8>("F8-image-visibility.md");
    F8 { code, orders, explored: [without, with], kernels: [written, mended, caused] }
}

/// F8: Mesa 25 sets the cache bit of an image read, and Mesa 26 does not.
#[test]
fn f8_an_image_read_is_not_made_visible() {
    let Some(folder) = compilers("mesa-26.2.6", "F8 is not shown") else { return };
    let F8 { code, orders, .. } = f8();
    let replaced = [("DIR", folder.to_str().unwrap())];
    let code = run(&code, &replaced);
    assert_eq!(code.code, 0, "{code:?}");
    let reads = |mesa: &str| -> Vec<bool> {
        let device = format!(" on radv:navi31@{mesa}");
        let is_of =
            |kernel: &&str| kernel.trim_start().lines().next().is_some_and(|line| line.contains(&device));
        let kernels = code.stdout.split("\n\n").filter(is_of);
        let line = |kernel: &str| {
            kernel.lines().find(|line| line.contains("image_load")).map(|line| line.contains("glc"))
        };
        kernels.filter_map(line).collect()
    };
    assert_eq!(reads("25"), [true, true], "{}", code.stdout);
    assert_eq!(reads("26"), [false, false], "{}", code.stdout);
    for (command, weakened) in orders.iter().zip([0, 6]) {
        let ran = run(command, &replaced);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(acquires(&ran, "weakened"), weakened, "{command}\n{}", ran.stdout);
    }
}

/// The change that causes F8, applied to the older Mesa, drops only the bit of image accesses. With the
/// patch, every kernel equals that of the older Mesa.
#[test]
fn f8_the_patch_restores_the_cache_bit() {
    let Some(folder) =
        compilers("patched/F8/MADE", "F8's cause and patch, which ci/mesa-patch builds, are not tried")
    else {
        return;
    };
    let baseline = tempfile::tempdir().unwrap();
    let replaced = [("DIR", folder.to_str().unwrap()), ("BASELINE", baseline.path().to_str().unwrap())];
    let F8 { explored: [without, with], kernels: [written, mended, caused], .. } = f8();
    // Three families, two forms.
    for (command, code, verdict) in [(without, 1, "reachable"), (with, 0, "unreachable")] {
        let ran = run(&command, &replaced);
        assert_eq!(ran.code, code, "{ran:?}");
        let table =
            ran.stdout.lines().filter(|line| line.starts_with("radv:") && line.contains(" documented "));
        let cells: Vec<Vec<&str>> = table.map(|line| line.split_whitespace().collect()).collect();
        let column = if verdict == "unreachable" { 3 } else { 4 };
        assert!(cells.len() == 6 && cells.iter().all(|cells| cells[column] == "1"), "{}", ran.stdout);
    }
    assert_eq!(run(&written, &replaced).code, 0);
    let changed = |command: &str| -> Vec<String> {
        let ran = run(command, &replaced);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!ran.stdout.contains(": new: ") && !ran.stdout.contains(": gone: "), "{}", ran.stdout);
        let lines = ran.stdout.lines().map(str::trim_start);
        lines.filter(|line| line.starts_with("- ") || line.starts_with("+ ")).map(str::to_owned).collect()
    };
    assert!(changed(&mended).is_empty());
    let caused = changed(&caused);
    assert!(caused.len() > 30, "{caused:#?}");
    assert!(
        caused.iter().all(|line| line.get(2..).is_some_and(|line| line.starts_with("image_"))),
        "{caused:#?}"
    );
}

fn function<'a>(assembly: &'a str, name: &str) -> &'a str {
    let start = assembly.find(&format!("\n{name}:")).unwrap();
    assembly.get(start..).unwrap().split("s_endpgm").next().unwrap()
}

/// Returns true if a wait for the first store precedes the store of the flag.
fn waits(text: &str, hand_over: &str) -> bool {
    let (_, behind) = text.split_once("_store_").unwrap();
    let (between, _) = behind.split_once(hand_over).unwrap();
    ["vmcnt(0)", "vscnt", "storecnt"].iter().any(|wait| between.contains(wait))
}

#[test]
fn f3_llvm_waits_after_the_barrier() {
    let [command] = commands("F3-llvm-hsa.md");
    // LLVM 19 and 22: before the barrier, and before the flag.
    let table = [
        ("gfx803", (true, false), (true, false)),
        ("gfx906", (true, false), (true, false)),
        ("gfx90a", (false, false), (false, false)),
        ("gfx942", (false, false), (false, false)),
        ("gfx1030 -mattr=+cumode", (false, false), (true, true)),
        ("gfx1100 -mattr=+cumode", (true, false), (true, true)),
        ("gfx1030", (true, true), (true, true)),
        ("gfx1201", (true, true), (true, true)),
    ];
    for program in ["llc-19", "llc-22"].into_iter().filter(|program| has(program)) {
        for (target, older, newer) in table {
            let ran = run(&command, &[("gfx90a", target), ("llc-19", program)]);
            assert_eq!(ran.code, 0, "{ran:?}");
            let found = (
                waits(function(&ran.stdout, "barrier"), "s_barrier"),
                waits(function(&ran.stdout, "flag"), "_store_"),
            );
            let expected = if program == "llc-19" { older } else { newer };
            assert_eq!(found, expected, "{program} {target}\n{}", ran.stdout);
        }
    }
}

#[test]
fn f4_atomics_of_gfx12_have_no_scope() {
    let Some(folder) = std::env::var_os("VK_LITMUS_MESA_FOLDER") else {
        println!("1 skipped: VK_LITMUS_MESA_FOLDER names no folder with a newer Mesa");
        return;
    };
    let [command] = commands("F4-gfx12-atomics.md");
    let ran = run(&command, &[("DIR", folder.to_str().unwrap())]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let atomics: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("buffer_atomic_add")).collect();
    assert!(!atomics.is_empty(), "{}", ran.stdout);
    for line in atomics {
        assert!(line.contains("TH_ATOMIC_RETURN") && !line.contains("scope:"), "{line}");
    }
}
