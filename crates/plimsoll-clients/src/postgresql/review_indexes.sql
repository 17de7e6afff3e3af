ALTER TABLE membership ADD PRIMARY KEY (customerid);
ALTER TABLE reviews ADD PRIMARY KEY (review_id);
ALTER TABLE reviews_helpfulness ADD PRIMARY KEY (review_helpfulness_id);
CREATE INDEX ix_reviews_prod_stars ON reviews (prod_id, stars);
CREATE INDEX ix_helpfulness_review ON reviews_helpfulness (review_id);
SELECT setval('reviews_review_id_seq', (SELECT max(review_id) FROM reviews));
