//! Documents of a context cache: what building costs for each, and what an answer costs.

use std::path::Path;

use super::{Options, curve::Curve};
use crate::{Failure, context};

const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

pub fn curves(rialto: &Path, options: &Options) -> Result<Vec<Curve>, Failure> {
    let sizes = if options.quick { &SIZES[..3] } else { &SIZES[..] };
    let mut build = Curve {
        file: "documents-build",
        what: "building a context cache",
        unit: "CPU µs/document",
        size: "documents",
        target: 0.1,
        points: Vec::new(),
    };
    let one = Curve {
        file: "documents-resolve-one",
        what: "an answer from one document that matches",
        unit: "CPU µs/call",
        points: Vec::new(),
        ..build
    };
    // Words that are in most documents have to be weighed in most documents.
    let all = Curve {
        file: "documents-resolve",
        what: "an answer, mean of eight queries",
        target: 0.5,
        points: Vec::new(),
        ..one
    };
    let mut answers = [one, all];
    for &size in sizes {
        eprint!("\rcontext cache with {size} documents{:40}", "");
        let context::Grown { build_us, one_us, all_us } =
            context::grown(rialto, size, options.calls(2_000), options.rounds)?;
        build.push(size, build_us);
        answers[0].push(size, one_us);
        answers[1].push(size, all_us);
    }
    let [one, all] = answers;
    Ok(vec![build, one, all])
}
