-- Is a sign of life. It names no key.
-- Answers {1}.
return {1}
