"""What a stream means, and every decision: pure machines, no Ray, no Spark, no hidden clock."""
