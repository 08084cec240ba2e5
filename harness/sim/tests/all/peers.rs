//! Runs the tests of other tools from a folder in an environment variable: no forbidden outcome occurs.

use std::path::{Path, PathBuf};

use litmus::Race;
use sim::{Fault, SimDevice};

use crate::common::{complete_prediction, disallowed_outcomes, instance_count, run};

#[test]
fn tests_of_other_tools_show_no_forbidden_outcome() {
    let Some(corpora) = std::env::var_os("VK_LITMUS_CORPORA").map(PathBuf::from) else {
        println!("1 skipped: VK_LITMUS_CORPORA is not set");
        return;
    };
    let mut files = Vec::new();
    find(&corpora, &mut files);
    files.sort();
    let device = SimDevice::new(Fault::None);
    let (mut ran, mut free, mut total, mut wrong, mut ended) = (0, 0, 0, Vec::new(), Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.strip_prefix(&corpora).unwrap_or(file).display().to_string();
        let Ok(mut test) = litmus::parse(&text, &name) else { continue };
        // Devices do not apply the filter, so only the whole program can be judged.
        (test.filter, test.khronos) = (None, None);
        let Some(seen) = run(&device, &test, instance_count(1_000), 17) else { continue };
        let seen = match seen {
            Ok(seen) => seen,
            // The test documents a barrier that is never complete.
            Err(error) => {
                ended.push(format!("{name}: {}", error.cause));
                continue;
            }
        };
        ran += 1;
        total += seen.accounted_instances();
        let Some(prediction) = complete_prediction(&test) else { continue };
        free += u32::from(prediction.race == Race::Free);
        wrong.extend(
            disallowed_outcomes(&test, &prediction, &seen).into_iter().map(|wrong| format!("{name} {wrong}")),
        );
    }
    println!(
        "{ran} of {} files ran, {free} of them race-free, {total} instances; ended early: {ended:#?}",
        files.len()
    );
    assert!(ran > 100, "{ran}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(ended.iter().all(|end| end.ends_with("step budget")), "{ended:#?}");
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "litmus" || extension == "test") {
            files.push(path);
        }
    }
}
