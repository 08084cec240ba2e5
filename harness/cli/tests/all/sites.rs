//! `report --site`: static pages with valid links, checked in Chromium, and data that can be read again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use crate::reports::{chromium, document, in_folder, run};

/// Returns every file below a folder, with paths relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found
}

/// Returns the link targets of a page without fragments, as file paths.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for part in page.split(" href=\"").skip(1) {
        let address = part.split('"').next().unwrap().split('#').next().unwrap();
        if !address.is_empty() {
            links.push(address.replace("%2B", "+").replace("%40", "@"));
        }
    }
    links
}

#[test]
fn links_of_a_site_are_valid_and_its_data_equals_the_results() {
    let folder = tempdir().unwrap();
    run(folder.path(), "sound", &[]);
    run(folder.path(), "faulty", &["--fault", "release-no-flush"]);
    let made = in_folder(folder.path(), &["report", "sound", "faulty", "--site", "site"]);
    assert_eq!((made.code, made.stdout.as_str()), (0, ""), "{made:?}");
    let site = folder.path().join("site");
    let all = files(&site);
    for path in all.iter().filter(|path| path.extension().is_some_and(|end| end == "html")) {
        let page = std::fs::read_to_string(site.join(path)).unwrap();
        for link in links(&page) {
            assert!(site.join(path).parent().unwrap().join(&link).is_file(), "{}: {link}", path.display());
        }
    }
    // Two devices and four tests have one page each; the index is an additional page.
    assert_eq!(all.iter().filter(|path| path.extension().is_some_and(|end| end == "html")).count(), 7);
    let table =
        |of: &[&str]| in_folder(folder.path(), &[&["report"], of, &["--format", "csv"]].concat()).stdout;
    let data: Vec<String> = all
        .iter()
        .filter(|path| path.starts_with("data"))
        .map(|path| format!("site/{}", path.display()))
        .collect();
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    assert_eq!(data, ["site/data/sim-0.1.0-fault-release-no-flush.jsonl", "site/data/sim-0.1.0.jsonl"]);
    assert_eq!(table(&[data[1], data[0]]), table(&["sound", "faulty"]));

    // A site for fewer results replaces all files of the older one.
    assert_eq!(in_folder(folder.path(), &["report", "sound", "--site", "site"]).code, 0);
    assert!(!files(&site).contains(Path::new("data/sim-0.1.0-fault-release-no-flush.jsonl")));
    // Folders that are not sites are refused and unchanged.
    let refused = in_folder(folder.path(), &["report", "sound", "--site", "sound"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.messages().contains("is not empty and is not a site"), "{refused:?}");
}

#[test]
fn plots_have_a_point_per_observed_test() {
    let folder = tempdir().unwrap();
    run(folder.path(), "first", &[]);
    run(folder.path(), "second", &[]);
    let drawn = in_folder(folder.path(), &["report", "first", "second", "--plots", "plots"]);
    assert_eq!((drawn.code, drawn.stdout.as_str()), (0, ""), "{drawn:?}");
    let plots = folder.path().join("plots");
    let names: Vec<String> = files(&plots).iter().map(|path| path.display().to_string()).collect();
    let (histograms, names): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| name.starts_with("histograms"));
    // Two families in two sizes and two themes, and the numbers.
    assert_eq!(histograms.len(), 9, "{histograms:?}");
    let expected =
        ["sim-0.1.0-2-speed", "sim-0.1.0-2-weak", "sim-0.1.0-runs-1", "sim-0.1.0-speed", "sim-0.1.0-weak"];
    assert_eq!(names, expected.map(|name| format!("{name}.svg")));
    let text = |name: &str| std::fs::read_to_string(plots.join(name)).unwrap();
    // Both tests with an observed weak outcome have a point; two runs are connected by lines.
    for id in ["sb/SB+rlx-rlx", "mp/MP+plain"] {
        assert!(text("sim-0.1.0-weak.svg").contains(id) && text("sim-0.1.0-runs-1.svg").contains(id), "{id}");
        assert!(text("sim-0.1.0-speed.svg").contains(id), "{id}");
    }
    let weak = text("sim-0.1.0-weak.svg");
    assert!(weak.matches("<circle").count() >= 2, "{weak}");
    // A plot as PNG: its header has the width and the height.
    for (size, width) in [("slide", 1600_u32), ("column", 4 * 340)] {
        let drawn = in_folder(folder.path(), &["plot", "sb/*", "first", "--size", size, "--out", "sb.png"]);
        let png = std::fs::read(folder.path().join("sb.png")).unwrap();
        assert!(drawn.code == 0 && png.starts_with(b"\x89PNG\r\n"), "{drawn:?}");
        assert_eq!(png[16..20], width.to_be_bytes());
    }
    assert_eq!(in_folder(folder.path(), &["plot", "sb/*", "first", "--out", "sb.gif"]).code, 2);
}

#[test]
fn a_site_works_in_a_browser_from_disk() {
    let Some(browser) = chromium() else { return };
    let (folder, profile) = (tempdir().unwrap(), tempdir().unwrap());
    run(folder.path(), "sound", &[]);
    run(folder.path(), "faulty", &["--fault", "release-no-flush"]);
    assert_eq!(in_folder(folder.path(), &["report", "sound", "faulty", "--site", "site"]).code, 0);
    let index = folder.path().join("site/index.html");
    let displayed_count = |fragment: &str| {
        let document = document(&browser, &profile, &index, fragment);
        document
            .split("<output id=\"shown\">")
            .nth(1)
            .and_then(|rest| rest.split('<').next())
            .map(str::to_owned)
    };
    assert_eq!(displayed_count("").as_deref(), Some("4 of 4 tests"));
    assert_eq!(displayed_count("#find=mp").as_deref(), Some("3 of 4 tests"));
    assert_eq!(displayed_count("#find=violates").as_deref(), Some("1 of 4 tests"));
    // Names from results cannot select files outside or run scripts.
    let hostile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/tests/all/records/hostile.jsonl");
    let made = in_folder(folder.path(), &["report", hostile.to_str().unwrap(), "--site", "hostile"]);
    assert_eq!(made.code, 0, "{made:?}");
    let site = folder.path().join("hostile");
    for path in files(&site).iter().filter(|path| path.extension().is_some_and(|end| end == "html")) {
        let document = document(&browser, &profile, &site.join(path), "");
        let expected_scripts = usize::from(path == Path::new("index.html"));
        // Images are plots of the site, which cannot run scripts.
        let pictures = document.matches("<img").count() - document.matches("src=\"../plot/").count();
        assert_eq!((document.matches("<script").count(), pictures), (expected_scripts, 0), "{path:?}");
    }
}
