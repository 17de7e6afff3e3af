mod figures;
use figures::*;

#[test]
#[ignore = "study"]
fn study() {
    let mut case = Case::edition_2010();
    if let Ok(text) = std::env::var("MEASURE_S") {
        case.measure_s = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("SETTLE") {
        case.settle_s = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("GIB") {
        let g: u64 = text.parse().unwrap();
        case.database_bytes = g * GIB;
        case.cache_bytes = case.cache_bytes * g / 100;
    }
    if let Ok(text) = std::env::var("SESSIONS") {
        case.sessions = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("READ_MS") {
        case.read_ms = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("FOLDER") {
        case.folder_records = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("VACANCY") {
        case.vacancy_percent = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("BATCH") {
        case.batch_operations = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("RECORD") {
        case.record_bytes = text.parse().unwrap();
    }
    if let Ok(text) = std::env::var("CACHE") {
        let c: u64 = text.parse().unwrap();
        case.cache_bytes = c * MIB;
    }
    if let Ok(text) = std::env::var("CUT") {
        case.maintenance = false;
        println!("{:?}", recover(&case, text.parse().unwrap()));
        return;
    }
    let start = std::time::Instant::now();
    measure(&case).print("study");
    println!("{:?} of wall time", start.elapsed());
}
