//! The layout of pages in headless Chromium: no page is wider than a phone, and text has enough contrast in
//! both themes.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::reports::{chromium, document, in_folder, run};

/// Sends the horizontal overflow and each text with a contrast below 4.5 to the parent frame.
const MEASURE: &str = include_str!("layout/measure.html");

/// Returns the findings of the script for a page in a frame of this width.
fn measure(browser: &Path, page: &Path, width: u32, dark: bool) -> String {
    let folder = tempdir().unwrap();
    let mut text = fs::read_to_string(page).unwrap();
    if let Ok(style) = fs::read_to_string(page.with_file_name("site.css")) {
        text = text.replace("</head>", &format!("<style>{style}</style></head>"));
    }
    // The content security policy of the page would block this script.
    let (before, rest) = text.split_once("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let (_, after) = rest.split_once('>').unwrap();
    let theme = if dark { "@media all" } else { "@media not all" };
    let text = format!("{before}{after}{MEASURE}").replace("@media(prefers-color-scheme:dark)", theme);
    fs::write(folder.path().join("page.html"), text).unwrap();
    let around = format!(
        "<!DOCTYPE html><iframe src=\"page.html\" style=\"width:{width}px;height:900px\"></iframe><p id=\"out\"></p>\
         <script>addEventListener('message', e => document.getElementById('out').textContent = e.data)</script>"
    );
    let outer = folder.path().join("outer.html");
    fs::write(&outer, around).unwrap();
    let document = document(browser, &tempdir().unwrap(), &outer, "");
    let measured = document.split("measured: ").nth(1).unwrap_or(&document);
    measured.split('<').next().unwrap_or_default().to_owned()
}

#[test]
fn pages_fit_phones_and_have_contrast() {
    let Some(browser) = chromium() else { return };
    let folder = tempdir().unwrap();
    run(folder.path(), "sound", &[]);
    run(folder.path(), "faulty", &["--fault", "release-no-flush"]);
    assert_eq!(in_folder(folder.path(), &["report", "sound", "faulty", "--out", "page.html"]).code, 0);
    assert_eq!(in_folder(folder.path(), &["report", "sound", "faulty", "--site", "site"]).code, 0);
    let mut wrong = Vec::new();
    for page in ["page.html", "site/index.html"] {
        for (width, dark) in [(400, false), (400, true), (1300, false)] {
            let found = measure(&browser, &folder.path().join(page), width, dark);
            if found != "nothing" {
                wrong.push(format!("{page} {width} dark {dark}: {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
