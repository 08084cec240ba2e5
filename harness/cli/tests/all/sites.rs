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
fn links_of_a_site_are_valid() {
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
