//! Notebooks: which cell a place is in, what is found there, and where it grew.

use std::path::{Path, PathBuf};

use tidegate_watch::why::{Cause, Growth, Notebook, cell_of, findings, remedies};

use crate::remedies::{MB, case, grew};

fn notebook(cells: &[&str]) -> String {
    let cells: Vec<serde_json::Value> = cells
        .iter()
        .map(|cell| match cell.strip_prefix("markdown:") {
            Some(text) => serde_json::json!({"cell_type": "markdown", "metadata": {}, "source": text}),
            None => {
                let lines: Vec<&str> = cell.split_inclusive('\n').collect();
                serde_json::json!({"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": lines})
            }
        })
        .collect();
    serde_json::json!({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4})
        .to_string()
}

/// The numbers are those of `ipykernel.compiler.get_file_name` (ipykernel 7.4.0):
///
/// ```python
/// from ipykernel.compiler import murmur2_x86
/// for cell in ["", "x = 1", "import pandas as pd\ndf = pd.read_csv('data.csv')", "a", "ab", "abc", "print('größer')\n"]:
///     print(murmur2_x86(cell, 0xC70F6907))
/// ```
#[test]
fn a_kernel_names_its_files_for_what_cells_say() {
    let cells = [
        ("", 3990065800_u32),
        ("x = 1", 3427300630),
        ("import pandas as pd\ndf = pd.read_csv('data.csv')", 836886925),
        ("a", 2167009006),
        ("ab", 2805137849),
        ("abc", 3350977461),
        ("print('größer')\n", 1188277326),
    ];
    let notebook = Notebook {
        cells: cells.iter().map(|(cell, _)| cell.to_string()).collect(),
    };
    for (number, (cell, name)) in (1..).zip(cells) {
        let file = format!("/tmp/ipykernel_4711/{name}.py");
        assert_eq!(cell_of(&notebook, &file), Some(number), "{cell:?}");
    }
    // The first cell is empty, and was not run.
    assert_eq!(cell_of(&notebook, "<ipython-input-1-0123456789ab>"), Some(2));
    for file in [
        "/tmp/ipykernel_4711/1.py",
        "/tmp/3427300630.py",
        "train.py",
        "<stdin>",
        "<ipython-input-0-00>",
        "",
        "<ipython-input-99-0>",
    ] {
        assert_eq!(cell_of(&notebook, file), None, "{file}");
    }
}

#[test]
fn cells_are_counted_and_see_each_others_names() {
    let text = notebook(&[
        "markdown:# A title",
        "import pandas as pd\n",
        "%%bash\npd.read_csv('x.csv')\n",
        "%matplotlib inline\n!pip install \\\n  polars\n%time df = pd.read_csv('a.csv')\n",
        "other = pd.read_csv('b.csv')\nfor x in (\n",
        "last = pd.read_parquet('c.parquet')\n",
    ]);
    let found = findings(&text, Path::new("look.ipynb"));
    let told: Vec<(Option<u32>, u32, &str)> = found
        .iter()
        .map(|finding| (finding.cell, finding.line, finding.before.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some(3), 4, "df = pd.read_csv('a.csv')"),
            (Some(4), 1, "other = pd.read_csv('b.csv')"),
            (Some(5), 1, "last = pd.read_parquet('c.parquet')"),
        ]
    );
}

#[test]
fn growth_in_a_cell_belongs_to_its_finding() {
    let cells = ["import pandas as pd", "x = 1\ndf = pd.read_csv('a.csv')", "x = 1"];
    let sources = [(PathBuf::from("look.ipynb"), notebook(&cells))];
    let case = case("jupyter nbconvert --execute look.ipynb");
    // murmur2_x86("x = 1\ndf = pd.read_csv('a.csv')", 0xC70F6907)
    let mut growth = grew("/tmp/ipykernel_9/1217639242.py", 2, 100 * MB, 0.6);
    let check = |growth: &Growth| {
        let found = remedies(&case, Cause::HostOom, std::slice::from_ref(growth), &sources);
        let first = &found[0];
        assert_eq!((first.measured, first.saves), (true, Some(90 * MB)));
        let place = first.place.as_ref().expect("a place");
        assert_eq!(
            (place.file.as_str(), place.line, place.function.as_str()),
            ("/home/ada/job/look.ipynb", 2, "cell 2")
        );
    };
    check(&growth);
    // Somebody has looked the cell up already.
    growth.place.file = "look.ipynb".into();
    growth.cell = Some(2);
    check(&growth);
    // A line that no rule knows is shown as it stands.
    growth.place.file = "/tmp/ipykernel_9/3427300630.py".into();
    growth.place.line = 1;
    growth.cell = None;
    let found = remedies(&case, Cause::HostOom, &[growth], &sources);
    assert_eq!(
        found[0].title,
        "Look at look.ipynb, cell 3, line 1: memory grew there by 100 MB"
    );
    assert_eq!(found[0].before.as_deref(), Some("x = 1"));
}

#[test]
fn notebooks_of_any_age_and_kind_are_read() {
    let check = |text: &str, expected: Option<usize>| {
        assert_eq!(
            Notebook::parse(text).map(|notebook| notebook.cells.len()),
            expected,
            "{text}"
        );
        assert!(findings(text, Path::new("a.ipynb")).is_empty());
    };
    check(
        r#"{"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}], "nbformat": 3}"#,
        Some(1),
    );
    check(
        r#"{"cells": [{"cell_type": "code", "source": "x = 1"}, {"cell_type": "raw"}]}"#,
        Some(1),
    );
    check(
        r#"{"cells": [{"cell_type": "code", "source": "x"}], "metadata": {"kernelspec": {"language": "R"}}}"#,
        None,
    );
    check(r#"{"cells": []}"#, Some(0));
    check("{}", Some(0));
    check("", None);
    check("import pandas as pd\npd.read_csv('x')", None);
    check(r#"{"cells": [1, 2]}"#, None);
}

proptest::proptest! {
    #[test]
    fn no_notebook_makes_it_panic(cells in proptest::collection::vec("[ -~\n%!?\\\\\"']{0,80}", 0..8)) {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let text = notebook(&cells);
        for finding in findings(&text, Path::new("a.ipynb")) {
            assert!(finding.cell.is_some());
        }
    }
}
