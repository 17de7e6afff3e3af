//! What is measured: the names of figures, and the histograms of latencies.

mod dictionary;
mod histogram;
